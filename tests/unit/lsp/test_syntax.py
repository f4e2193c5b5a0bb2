"""Incremental parses equal fresh ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.documents.syntax import SyntaxTree, parser_for
from lsp_server.documents.text import Change, Document, Point, Snapshot

LANGUAGES = (
    "python",
    "javascript",
    "javascriptreact",
    "typescript",
    "typescriptreact",
    "go",
    "rust",
    "java",
    "c",
    "cpp",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_grammar_loads(language: str) -> None:
    tree = SyntaxTree().tree(Snapshot.of("x", language_id=language))
    assert tree is not None
    assert tree.root_node.end_byte == 1


def test_unknown_language_has_no_tree() -> None:
    assert parser_for("klingon") is None
    assert SyntaxTree().tree(Snapshot.of("x", language_id="klingon")) is None


PIECES = st.sampled_from(
    ["def f(x):\n", "    return é\n", "(", ")", "\r\n", "\r", "😀", "x = 1", "", "'''\n"]
)


@settings(max_examples=60)
@given(
    st.lists(PIECES, max_size=8).map("".join),
    st.lists(st.tuples(*[st.integers(0, 6)] * 4, PIECES), max_size=5),
)
def test_incremental_equals_fresh(text: str, edits: list[tuple[int, int, int, int, str]]) -> None:
    document = Document("file:///x.py", 1, "python", text)
    tracked = SyntaxTree()
    tracked.tree(document.snapshot())
    for number, (line, column, end_line, end_column, new) in enumerate(edits):
        change = Change(new, Point(line, column), Point(end_line, end_column))
        document.apply(number + 2, [change], "utf-16")
        tree = tracked.tree(document.snapshot())
        fresh = SyntaxTree().tree(document.snapshot())
        assert tree is not None and fresh is not None
        assert str(tree.root_node) == str(fresh.root_node)
        assert tree.root_node.end_byte == fresh.root_node.end_byte
        assert tracked.tree(document.snapshot()) is tree
