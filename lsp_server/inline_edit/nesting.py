"""Whether an edit defines once more what is defined around the selection or beside it.

It parses, so nothing else would find it: the body of a function that became the whole function, or a method
that got a second constructor of its class in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsp_server.context.node_types import FUNCTIONS, is_container
from lsp_server.inline_edit.around import DEFINES, words
from lsp_server.inline_edit.context import heads_above
from lsp_server.inline_edit.edited import Edited
from lsp_server.inline_edit.selection import Selection

if TYPE_CHECKING:
    from tree_sitter import Node

_NAMELESS = frozenset({"arrow_function", "function", "function_expression"})
_NAMES = frozenset({"identifier", "simple_identifier", "type_identifier"})
# Where the second of two definitions of one name replaces the first. Others have overloads or receivers.
_REDEFINES = frozenset({"python", "javascript", "javascriptreact"})


def defines_again(selection: Selection, lines: Sequence[str], edited: Edited) -> bool:
    """Whether ``lines`` define what the selection is a part of or beside, and the selected lines did not."""
    snapshot, old = selection.snapshot, selection.lines
    heads = [snapshot.line(number) for number in heads_above(snapshot, selection.start)]
    known = set(old)
    added = [line for line in lines if line not in known]
    names = set().union(*map(words, heads))
    nests = not names.isdisjoint(set().union(*map(words, added)))
    redefines = snapshot.language_id in _REDEFINES
    if not nests and not redefines:
        return False
    root = edited.after
    if root is None:
        return nests and _by_text(heads, added)
    last = selection.first + len(lines)
    again = nests and _again(root, selection.first, last)
    beside = _beside(root, selection.first, last) if redefines else set()
    if not again and not beside:
        return nests and root.has_error and _by_text(heads, added)
    before = edited.before
    assert before is not None, "a document that has a tree afterwards had one"
    if again and not _again(before, selection.first, selection.stop):
        return True
    return bool(beside - _beside(before, selection.first, selection.stop))


def _by_text(heads: Sequence[str], added: Sequence[str]) -> bool:
    """The same for what no parser makes sense of."""
    defined = {found.group() for head in heads if (found := DEFINES.match(head.strip()))}
    return any((found := DEFINES.match(line.strip())) and found.group() in defined for line in added)


def _again(root: Node, first: int, stop: int) -> bool:
    """Whether a definition on lines ``first`` to ``stop`` has kind and name of one that begins above."""
    # With the definitions around each node. What is in one that begins inside is its own affair.
    stack: list[tuple[Node, frozenset[tuple[bool, str]]]] = [(root, frozenset())]
    while stack:
        node, around = stack.pop()
        if node.end_point[0] < first or node.start_point[0] >= stop:
            continue
        definition = _definition(node)
        if definition is not None:
            if node.start_point[0] >= first:
                if definition in around:
                    return True
                continue
            around = around | {definition}
        stack += [(child, around) for child in node.children]
    return False


def _beside(root: Node, first: int, stop: int) -> set[str]:
    """Heads up to the name of definitions on lines ``first`` to ``stop`` that come beside these lines too.

    A decorated one may belong to the other, as the setter of a property does.
    """
    found: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node.end_point[0] < first or node.start_point[0] >= stop:
            continue
        inside: set[str] = set()
        outside: set[str] = set()
        for child in node.children:
            head = _head(child)
            if head is not None:
                (inside if first <= child.start_point[0] < stop else outside).add(head)
        found |= inside & outside
        stack += node.children
    return found


def _head(node: Node) -> str | None:
    """What a definition begins with, through its name: ``get x`` and ``set x`` are not the same."""
    if _definition(node) is None or (name := node.child_by_field_name("name")) is None:
        return None
    head = (node.text or b"")[: name.end_byte - node.start_byte].decode("utf-8", "replace")
    return " ".join(head.split()).removeprefix("async ")


def _definition(node: Node) -> tuple[bool, str] | None:
    """Whether it has members, and its name."""
    members = is_container(node)
    if not members and node.type not in FUNCTIONS and node.type not in _NAMELESS:
        return None
    if not node.is_named:
        return None
    name = _name(node if node.type not in _NAMELESS else node.parent)
    return None if name is None else (members, name)


def _name(node: Node | None) -> str | None:
    if node is None:
        return None
    for field in ("name", "declarator", "type", "left", "key"):
        inner = node.child_by_field_name(field)
        if inner is None:
            continue
        if field == "declarator" and inner.type not in _NAMES:
            return _name(inner)
        return _text(inner)
    return next((_text(child) for child in node.children if child.type in _NAMES), None)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
