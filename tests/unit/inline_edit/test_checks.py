from __future__ import annotations

import pytest

from lsp_server.documents.text import Snapshot
from lsp_server.inline_edit import checks
from lsp_server.inline_edit.checks import deletes_most, repeats, summary, whole_text
from lsp_server.inline_edit.edited import Edited
from lsp_server.inline_edit.reasons import Flag

OLD = [f"line_{number} = {number}" for number in range(10)]


def flags_of(
    before: Snapshot, old: list[str], new: list[str], after: str, instruction: str, truncated: bool
) -> list[Flag]:
    return checks.flags_of(Edited(before, after), old, new, instruction, truncated)


@pytest.mark.parametrize(
    ("new", "instruction", "expected"),
    [
        (OLD[:3], "rename a to b", True),
        (OLD[:3], "remove what is not needed", False),
        (OLD[:3], "simplify", False),
        (OLD[:5], "rename a to b", False),
        ([], "rename a to b", True),
        ([], "delete this", False),
    ],
)
def test_deletes_most(new: list[str], instruction: str, expected: bool) -> None:
    assert deletes_most(OLD, new, instruction) is expected


def test_few_lines_may_become_one() -> None:
    assert not deletes_most(OLD[:3], OLD[:1], "do it otherwise")


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (["a()"] * 4, True),
        (["a()"] * 3, False),
        (["a()", "b()"] * 4, True),
        (["}"] * 9, False),
        (["a()", "", "a()", "", "a()", "", "a()"], True),
    ],
)
def test_repeats(new: list[str], expected: bool) -> None:
    assert repeats(OLD, new) is expected
    assert not repeats(["x()"] * 4, new)


def test_flags() -> None:
    snapshot = Snapshot.of("def f():\n    return 1\n", language_id="python")
    old = ["    return 1"]

    def flags(new: list[str], truncated: bool = False) -> list[Flag]:
        return flags_of(snapshot, old, new, whole_text(snapshot, 1, 2, new), "change it", truncated)

    assert flags(["    return 2"]) == []
    assert flags(["    return (2"]) == [Flag.PARSE_ERROR]
    assert flags(["    return 2"], True) == [Flag.TRUNCATED]
    broken = Snapshot.of("def f(:\n    return 1\n", language_id="python")
    assert (
        flags_of(broken, old, ["    return ("], whole_text(broken, 1, 2, ["    return ("]), "x", False) == []
    )
    text = Snapshot.of("(((", language_id="plaintext")
    assert flags_of(text, ["((("], ["(("], whole_text(text, 0, 1, ["(("]), "x", False) == []


def test_the_whole_text_keeps_its_end() -> None:
    assert whole_text(Snapshot.of("a\nb"), 1, 2, ["c"]) == "a\nc"
    assert whole_text(Snapshot.of("a\r\nb\r\n"), 1, 2, ["c", "d"]) == "a\nc\nd\n"


def test_summary() -> None:
    assert summary(["a", "b"], ["a", "c", "d"]) == "2 lines added, 1 line removed"
