"""The text around a cursor with its parse tree, and the tree with something inserted.

Only a window of the document is parsed, so that neither costs more in a larger file.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from inference.lines import indent_columns
from inference.stops import CLOSERS
from lsp_server.documents.grammars import parser_for
from lsp_server.documents.languages import canonical
from lsp_server.documents.line_index import to_lf
from lsp_server.documents.text import Point, Snapshot

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

# Characters of the window.
BEFORE_CHARS = 14_000
AFTER_CHARS = 6_000
# A longer line than this is data or generated.
MAX_LINE_CHARS = 4_000


def around(snapshot: Snapshot, cursor: Point) -> tuple[str, str]:
    """The text before and behind ``cursor`` (column in characters), whole lines up to the limits.

    Both are empty where the cursor's line is too long.
    """
    line = to_lf(snapshot.lines[cursor.line])
    if len(line) > MAX_LINE_CHARS:
        return "", ""
    return (
        _before(snapshot, cursor.line, BEFORE_CHARS - cursor.column) + line[: cursor.column],
        line[cursor.column :] + _after(snapshot, cursor.line, AFTER_CHARS - len(line) + cursor.column),
    )


class Surroundings:
    """A window parsed at most once, and again in part for each text that is tried at the cursor.

    Attributes:
        cursor: bytes before the cursor.
    """

    def __init__(self, parser: Parser, before: str, after: str) -> None:
        self._parser = parser
        self._after = after
        self._head = before.encode("utf-8", "replace")
        self.cursor = len(self._head)

    @classmethod
    def of(cls, language_id: str, before: str, after: str) -> Surroundings | None:
        """None for a language without a grammar and for no text."""
        if not before and not after:
            return None
        if canonical(language_id) == "php" and "<?" not in before and "<?" not in after:
            language_id = "php-only"
        parser = parser_for(language_id)
        return None if parser is None else cls(parser, before, after)

    @cached_property
    def tree(self) -> Tree:
        """Of the window as it is."""
        return self._parser.parse(self._head + self._after.encode("utf-8", "replace"))

    @cached_property
    def faults(self) -> int:
        """Of the window as it is, see `faults`."""
        return faults(self.tree.root_node)

    def inserted(self, text: str, covered: int = 0) -> Tree:
        """The tree with ``text`` at the cursor, in place of the next ``covered`` characters."""
        new = text.encode("utf-8", "replace")
        old = self._after[:covered].encode("utf-8", "replace")
        tree = self.tree.copy()
        row, column = self._head.count(b"\n"), self.cursor - (self._head.rfind(b"\n") + 1)
        tree.edit(
            start_byte=self.cursor,
            old_end_byte=self.cursor + len(old),
            new_end_byte=self.cursor + len(new),
            start_point=(row, column),
            old_end_point=_moved(row, column, old),
            new_end_point=_moved(row, column, new),
        )
        source = self._head + new + self._after[covered:].encode("utf-8", "replace")
        return self._parser.parse(source, tree)


def faults(root: Node) -> int:
    """How many places the parser could not make sense of or had to make something up for."""
    count = 0
    stack = [root]
    while stack:
        node = stack.pop()
        if node.has_error:
            count += node.is_error or node.is_missing
            stack.extend(node.children)
    return count


def _moved(row: int, column: int, text: bytes) -> tuple[int, int]:
    rows = text.count(b"\n")
    return (row + rows, len(text) - text.rfind(b"\n") - 1) if rows else (row, column + len(text))


def _before(snapshot: Snapshot, stop: int, room: int) -> str:
    first = stop
    while first > 0 and len(snapshot.lines[first - 1]) <= min(room, MAX_LINE_CHARS):
        first -= 1
        room -= len(snapshot.lines[first])
    if first > 0:
        first = _outermost(snapshot, first, stop)
    return snapshot.lf(first, stop)


def _outermost(snapshot: Snapshot, first: int, stop: int) -> int:
    """The least indented line in the first half: a cut inside a deep block looks like a fault."""
    best, fewest = first, None
    for number in range(first, first + (stop - first) // 2):
        line = snapshot.lines[number]
        code = line.lstrip()
        if not code or code[0] in CLOSERS:
            continue
        columns = indent_columns(line[: len(line) - len(code)])
        if fewest is None or columns < fewest:
            best, fewest = number, columns
            if not columns:
                break
    return best


def _after(snapshot: Snapshot, line: int, room: int) -> str:
    stop = line + 1
    while stop < len(snapshot.lines) and len(snapshot.lines[stop]) <= min(room, MAX_LINE_CHARS):
        room -= len(snapshot.lines[stop])
        stop += 1
    return snapshot.lf(line + 1, stop)
