"""Incremental tree-sitter parse trees of documents.

Nothing here runs on ``didChange``: the edit is found, told to the old tree and parsed when a tree is
asked for. Snapshots share the strings of unchanged lines, so finding it compares mostly pointers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsp_server.documents.grammars import parser_for
from lsp_server.documents.line_index import to_lf
from lsp_server.documents.text import Snapshot

if TYPE_CHECKING:
    from tree_sitter import Tree

__all__ = ["MAX_CHARS", "SyntaxTree", "parser_for"]

# What is larger is data or generated, and its first parse would be waited for.
MAX_CHARS = 1_000_000


class SyntaxTree:
    """The parse tree of one document, kept up to date on demand.

    The tree is over the text with ``\\n`` line ends in UTF-8 (lone surrogates as ``?``), so that its
    rows are the document's lines whatever their ends are. Not for two threads at once.
    """

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._tree: Tree | None = None

    def tree(self, snapshot: Snapshot) -> Tree | None:
        """The tree of ``snapshot``, or None for an unknown language and for more than `MAX_CHARS`."""
        parser = parser_for(snapshot.language_id)
        if parser is None or sum(map(len, snapshot.lines)) > MAX_CHARS:
            self._snapshot = self._tree = None
            return None
        old = self._snapshot
        if old is snapshot and self._tree is not None:
            return self._tree
        source = _encode(snapshot.lines)
        if old is None or self._tree is None or old.language_id != snapshot.language_id:
            self._tree = parser.parse(source)
        else:
            self._edit(self._tree, old.lines, snapshot.lines)
            self._tree = parser.parse(source, self._tree)
        self._snapshot = snapshot
        return self._tree

    @staticmethod
    def _edit(tree: Tree, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Tell the tree about the one span of whole lines that covers every difference."""
        shorter = min(len(old), len(new))
        head = 0
        while head < shorter and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        start = len(_encode(old[:head]))
        old_middle = old[head : len(old) - tail]
        new_middle = new[head : len(new) - tail]
        tree.edit(
            start_byte=start,
            old_end_byte=start + len(_encode(old_middle)),
            new_end_byte=start + len(_encode(new_middle)),
            start_point=(head, 0),
            old_end_point=_end_point(head, old_middle),
            new_end_point=_end_point(head, new_middle),
        )


def _encode(lines: tuple[str, ...]) -> bytes:
    return "".join(map(to_lf, lines)).encode("utf-8", "replace")


def _end_point(row: int, lines: tuple[str, ...]) -> tuple[int, int]:
    if lines and to_lf(lines[-1]).endswith("\n"):
        return row + len(lines), 0
    return (row + len(lines) - 1, len(_encode(lines[-1:]))) if lines else (row, 0)
