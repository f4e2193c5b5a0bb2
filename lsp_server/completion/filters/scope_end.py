"""Statements and definitions behind the end of the cursor's block, which nobody asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsp_server.completion.filters.context import FilterContext

if TYPE_CHECKING:
    from tree_sitter import Node

# Nodes that hold statements or members, in all grammars together.
_BLOCKS = frozenset(
    {
        "block",
        "block_body",
        "body_statement",
        "class_body",
        "compound_statement",
        "constructor_body",
        "declaration_list",
        "do_group",
        "enum_body",
        "enum_class_body",
        "enum_member_declaration_list",
        "enum_variant_list",
        "enumerator_list",
        "field_declaration_list",
        "function_body",
        "indented_block",
        "interface_body",
        "protocol_body",
        "statement_block",
        "statement_list",
        "statements",
        "switch_block",
        "switch_body",
        "template_body",
        "then",
    }
)
# Statements that are their own block, around the labels in it.
_SWITCHES = frozenset({"expression_switch_statement", "select_statement", "type_switch_statement"})
# Statements without the brackets around them; a block of their own only where there are none.
_LISTS = frozenset({"block_body", "body_statement", "statement_list", "statements"})


def scope_end(text: str, context: FilterContext) -> str | None:
    """Cut before the first statement that follows the end of the block the cursor stands in.

    The block is that of the first thing the suggestion says. Closing brackets, and what continues the same
    statement (``else``, ``except``), stay. Where the parser is not sure, nothing is cut.
    """
    surroundings = context.surroundings
    # With text behind the cursor the end of the block may be anywhere.
    if surroundings is None or context.rest.strip() or "\n" not in text.strip():
        return text
    new = text.encode("utf-8", "replace")
    start = surroundings.cursor + len(new) - len(new.lstrip())
    end = surroundings.cursor + len(new.rstrip())
    node: Node | None = surroundings.inserted(text).root_node.descendant_for_byte_range(start, start + 1)
    cut = _first_beyond(node, start, end)
    if cut is None:
        return text
    kept = text[: len(new[: cut - surroundings.cursor].decode("utf-8"))].rstrip()
    return kept if kept.strip() else text


def _first_beyond(node: Node | None, start: int, end: int) -> int | None:
    """Where the first sibling of an ended statement around ``node`` begins, between two bytes."""
    while (block := _block(node, start)) is not None and block.end_byte < end:
        statement: Node | None = block
        while statement is not None and not _is_statement(statement):
            if statement.is_error:
                return None
            statement = statement.parent
        if statement is None or statement.has_error:
            return None
        if statement.end_byte >= end:
            return None
        sibling = statement.next_named_sibling
        while sibling is not None and sibling.start_point.row == statement.end_point.row:
            sibling = sibling.next_named_sibling
        if sibling is not None and start < sibling.start_byte < end:
            return None if sibling.is_error else sibling.start_byte
        node = statement.parent
        if node is None:
            return None
        start = statement.start_byte
    return None


def _block(node: Node | None, start: int) -> Node | None:
    """The innermost block around ``start``, the root of the tree excepted."""
    while node is not None and node.parent is not None:
        parent = node.parent
        # A block without brackets begins where the suggestion does.
        if node.type in _BLOCKS and node.start_byte <= start:
            return parent if node.type in _LISTS and parent.type in _BLOCKS else node
        if node.type in _SWITCHES and node.start_byte < start:
            return node
        node = parent
    return None


def _is_statement(node: Node) -> bool:
    parent = node.parent
    if parent is None:
        return False
    if node.type in _LISTS and parent.type in _BLOCKS:
        return False
    return parent.parent is None or parent.type in _BLOCKS
