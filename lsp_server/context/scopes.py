"""Source "scope": the headers of what the cursor stands in, and the signatures of its siblings.

A window that begins in the middle of a class shows neither the class nor what else it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inference.stops import CLOSERS
from lsp_server.context.node_types import FUNCTIONS, header_stop, is_container
from lsp_server.context.related import KeptLines
from lsp_server.documents.text import Snapshot

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

# Ranks; imports stand between the two.
ENCLOSING, SIBLING = 0, 200
_MOST_SIBLINGS = 40
# A longer header is a list of something.
_MOST_LINES = 8
# More of them in a row end what stands above.
_BLANK_LINES = 2
_TAB = 4


def scope_lines(snapshot: Snapshot, line: int, tree: Tree | None) -> list[KeptLines]:
    """Headers of the definitions around ``line``, and signatures of methods above it in the same class.

    Half-typed code can hide a definition from the parser, then indentation tells the headers.
    """
    if line <= 0:
        return []
    around = [] if tree is None else list(_around(tree, snapshot, line))
    if not around:
        return list(_by_indentation(snapshot, line))
    found = []
    for node in around:
        header = _header(snapshot, node, ENCLOSING)
        if header is not None:
            found.append(_with_bracket(snapshot, header))
    siblings = [each for node in around if is_container(node) for each in _members(node, line)]
    siblings.sort(key=lambda node: -node.start_point[0])
    taken = {each.first for each in found}
    for distance, node in enumerate(siblings[:_MOST_SIBLINGS]):
        if node.start_point[0] not in taken:
            found += _signature(snapshot, node, SIBLING + distance)
    return sorted(found, key=lambda each: each.first)


def _around(tree: Tree, snapshot: Snapshot, line: int) -> Iterator[Node]:
    """Definitions that begin above ``line`` and reach it, innermost first."""
    at, limit = _where(snapshot, line)
    text = snapshot.line(at)
    column = len(text[: len(text) - len(text.lstrip())].encode("utf-8", "replace"))
    node = tree.root_node.descendant_for_point_range((at, column), (at, column))
    while node is not None:
        first = node.start_point[0]
        deeper = limit is None or _columns(snapshot.line(first)) < limit
        if first < line and deeper and (node.type in FUNCTIONS or is_container(node)):
            yield node
        node = node.parent


def _where(snapshot: Snapshot, line: int) -> tuple[int, int | None]:
    """The line whose place in the tree is that of ``line``, and the columns that a definition around it has
    less than; None for any.

    To the parser a body without brackets ends with its last statement. On an empty line behind that one
    the user is still in it, unless the line is indented less.
    """
    text = snapshot.line(line)
    if text.strip():
        return line, None
    for number in range(line - 1, max(-1, line - 1 - _BLANK_LINES), -1):
        above = snapshot.line(number).strip()
        if above:
            if above[0] in CLOSERS or above.startswith("end"):
                break
            return number, _columns(text) if text else None
    return line, None


def _header(snapshot: Snapshot, node: Node, rank: int) -> KeptLines | None:
    stop = header_stop(node)
    first = node.start_point[0]
    if stop is None or stop - first > _MOST_LINES:
        return None
    return KeptLines(first, stop, snapshot.lf(first, stop), rank)


def _with_bracket(snapshot: Snapshot, header: KeptLines) -> KeptLines:
    """With the line of the opening bracket, where it has one of its own."""
    stop = header.stop
    if stop < len(snapshot.lines) and snapshot.line(stop).strip() == "{":
        return KeptLines(header.first, stop + 1, snapshot.lf(header.first, stop + 1), header.rank)
    return header


def _members(node: Node, line: int) -> Iterator[Node]:
    body = node.child_by_field_name("body")
    for child in () if body is None else body.named_children:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is not None and inner.type in FUNCTIONS and inner.end_point[0] < line:
            yield inner


def _signature(snapshot: Snapshot, node: Node, rank: int) -> Iterator[KeptLines]:
    header = _header(snapshot, node, rank)
    if header is None:
        return
    # Without a mark for the body a model would learn that methods here have none.
    text = header.text.rstrip()
    if text.endswith(":"):
        text += " ..."
    elif text.endswith("{"):
        text += " ... }"
    elif "{" not in text and node.type not in ("method", "singleton_method"):
        text += " { ... }"
    yield KeptLines(header.first, node.end_point[0] + 1, text + "\n", rank, verbatim=False)


def _by_indentation(snapshot: Snapshot, line: int) -> Iterator[KeptLines]:
    """Lines above that are less indented than everything between them and ``line``."""
    text = snapshot.line(line)
    limit = _columns(text) if text.strip() else None
    found = []
    for number in range(line - 1, -1, -1):
        text = snapshot.line(number)
        if not text.strip() or len(text) > 400:
            continue
        columns = _columns(text)
        if limit is None:
            # On an empty line its neighbour above tells the depth.
            limit = columns + 1 if text.rstrip().endswith((":", "{", "(")) else columns
        if columns < limit and text.strip()[0].isalpha():
            found.append(KeptLines(number, number + 1, snapshot.lf(number, number + 1), ENCLOSING))
            limit = columns
        if limit == 0:
            break
    yield from reversed(found)


def _columns(text: str) -> int:
    blanks = text[: len(text) - len(text.lstrip())]
    return len(blanks.expandtabs(_TAB))
