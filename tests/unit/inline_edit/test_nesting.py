from __future__ import annotations

import pytest

from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.checks import whole_text
from lsp_server.inline_edit.edited import Edited
from lsp_server.inline_edit.nesting import defines_again
from lsp_server.inline_edit.selection import Selection

STORE = """class Store:
    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def size(self) -> int:
        return 0

    def load(self) -> str:
        return read(self.path)
"""
POINT = """class Point {
  get x() {
    return this.px;
  }
  move(by) {
    this.px += by;
  }
}
"""
LOAD = ["    def load(self) -> str:", "        return read(self.path)"]
MOVE = ["  move(by) {", "    this.px += by;", "  }"]
SECOND_INIT = ["    def __init__(self, path: Path):", "        self.path = path", ""]


def again(text: str, language: str, first: int, stop: int, lines: list[str]) -> bool:
    snapshot = Snapshot.of(text, language_id=language)
    selection = Selection.of(snapshot, Point(first, 0), Point(stop, 0))
    edited = Edited(snapshot, whole_text(snapshot, first, stop, lines))
    return defines_again(selection, lines, edited)


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (SECOND_INIT, True),
        (["    async def __init__(self):", "        pass", ""], True),
        (["    def save(self):", "        pass", ""], False),
        (["    @size.setter", "    def size(self, value: int) -> None:", "        pass", ""], False),
        (["    class Inner:", "        def __init__(self):", "            pass", ""], False),
    ],
)
def test_a_neighbour_in_a_python_class(added: list[str], expected: bool) -> None:
    assert again(STORE, "python", 8, 10, added + LOAD) is expected


def test_a_neighbour_that_was_there_twice_already() -> None:
    text = STORE + "\n" + "\n".join(SECOND_INIT)
    lines = [*SECOND_INIT[:1], "        self.path = str(path)"]
    assert not again(text, "python", 11, 13, lines)


def test_a_function_renamed_to_its_neighbour() -> None:
    text = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    assert again(text, "python", 4, 6, ["def a():", "    return 2"])
    assert not again(text, "python", 4, 6, ["def c():", "    return 2"])


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (["  get x() {", "    return 1;", "  }"], True),
        (["  set x(value) {", "    this.px = value;", "  }"], False),
        (["  static x() {", "    return 1;", "  }"], False),
    ],
)
def test_a_neighbour_in_a_javascript_class(added: list[str], expected: bool) -> None:
    assert again(POINT, "javascript", 4, 7, added + MOVE) is expected


def test_overloads_are_none() -> None:
    text = "class A {\n  void f(int a) {\n  }\n  void g() {\n  }\n}\n"
    lines = ["  void f(long a) {", "  }", "  void g() {", "  }"]
    assert not again(text, "java", 3, 5, lines)
