"""The window that is parsed, and texts tried in it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.documents.grammars import parser_for
from lsp_server.documents.surroundings import (
    AFTER_CHARS,
    BEFORE_CHARS,
    MAX_LINE_CHARS,
    Surroundings,
    around,
    faults,
)
from lsp_server.documents.text import Point, Snapshot

PIECES = st.lists(
    st.sampled_from(["def f(x):\n", "    return é\n", "(", ")", "😀", "x = 1", "'''\n", "\n", "\ud800"]),
    max_size=5,
).map("".join)


@settings(max_examples=60)
@given(PIECES, PIECES, PIECES, st.integers(0, 3))
def test_the_tree_with_a_text_is_that_of_the_whole(before: str, after: str, text: str, covered: int) -> None:
    place = Surroundings.of("python", before, after)
    if place is None:
        assert not before and not after
        return
    parser = parser_for("python")
    assert parser is not None
    whole = parser.parse((before + text + after[covered:]).encode("utf-8", "replace"))
    tried = place.inserted(text, covered)
    assert tried.root_node.end_byte == whole.root_node.end_byte
    assert tried.root_node.end_point == whole.root_node.end_point
    if not faults(whole.root_node):
        # With faults an old tree may be mended in another way than none.
        assert str(tried.root_node) == str(whole.root_node)
    plain = parser.parse((before + after).encode("utf-8", "replace"))
    assert place.faults == faults(plain.root_node)


def test_a_small_document_is_taken_whole() -> None:
    snapshot = Snapshot.of("a\r\nbé\r\nc")
    assert around(snapshot, Point(1, 1)) == ("a\nb", "é\nc")


def test_a_large_one_in_whole_lines_from_an_outer_one() -> None:
    method = "    def f(self, value):\n        return value + 1\n"
    text = ("class A:\n" + method * 40 + "\n") * 100
    snapshot = Snapshot.of(text)
    row = len(snapshot.lines) // 2
    before, after = around(snapshot, Point(row, 4))
    assert before.startswith("class A:\n")
    assert BEFORE_CHARS // 2 < len(before) <= BEFORE_CHARS
    assert AFTER_CHARS - 100 < len(after) <= AFTER_CHARS
    assert before + after in text
    assert after.endswith("\n")


def test_long_lines_are_left_out() -> None:
    long = "x" * (MAX_LINE_CHARS + 1)
    assert around(Snapshot.of(f"a\n{long}\nb"), Point(1, 3)) == ("", "")
    assert around(Snapshot.of(f"{long}\na\nb\n{long}\n"), Point(1, 1)) == ("a", "\nb\n")


def test_php_without_its_beginning() -> None:
    place = Surroundings.of("php", "function f() {\n    g(", ");\n}\n")
    assert place is not None and place.tree.root_node.child_count == 1 and not place.faults
    assert place.tree.root_node.children[0].type == "function_definition"
