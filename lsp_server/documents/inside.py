"""Whether a place in a parse tree is inside a comment or a string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Node

# What begins a comment of several lines; every other comment ends with its line.
_BLOCK_COMMENTS = (b"/*", b"<!--", b"--[", b"=begin", b"{-", b"(*")
# Code inside a string.
_INTERPOLATIONS = frozenset(
    {
        "command_substitution",
        "expansion",
        "interpolated_expression",
        "interpolation",
        "process_substitution",
        "template_substitution",
    }
)
_STRINGS = frozenset(
    {
        "ansi_c_string",
        "char_literal",
        "character_literal",
        "encapsed_string",
        "heredoc",
        "heredoc_body",
        "interpolated_string",
        "interpolated_string_expression",
        "interpreted_string_literal",
        "line_string_literal",
        "multi_line_string_literal",
        "multiline_string_literal",
        "nowdoc",
        "quoted_attribute_value",
        "raw_string",
        "raw_string_literal",
        "rune_literal",
        "string",
        "string_literal",
        "string_value",
        "system_lib_string",
        "template_string",
        "verbatim_string_literal",
    }
)


@dataclass(frozen=True)
class Inside:
    """Attributes:
    start: byte at which the comment or string begins.
    several_lines: it goes on below the line it began on.
    """

    kind: Literal["comment", "string"]
    start: int
    several_lines: bool


def inside(root: Node, at: int) -> Inside | None:
    """The comment or string around byte ``at``, None in code, between and behind them."""
    node: Node | None = root.descendant_for_byte_range(max(0, at - 1), at)
    string: Node | None = None
    comment: Node | None = None
    while node is not None:
        if node.is_named:
            if "comment" in node.type:
                comment = node
            elif node.type in _INTERPOLATIONS and node.start_byte < at < node.end_byte:
                break
            elif node.type in _STRINGS and node.start_byte < at < node.end_byte:
                string = node
        node = node.parent
    if comment is not None and comment.start_byte < at:
        block = (comment.text or b"").startswith(_BLOCK_COMMENTS)
        if at < comment.end_byte or not block:
            return Inside("comment", comment.start_byte, block)
    if string is not None:
        return Inside("string", string.start_byte, string.end_point.row > string.start_point.row)
    return None
