"""How much to suggest: the rest of a line, or lines and up to the end of the block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference.lines import indent_columns
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.suffix_overlap import CLOSING
from lsp_server.completion.scope import opens_block
from lsp_server.documents.inside import Inside, inside
from lsp_server.documents.lexical import COMMENT_OPENING, TEXT_OPENING, place_in_line

ShapeReason = Literal[
    "rest-of-line", "comment", "doc-comment", "string", "block-start", "empty-body", "empty-line", "line-end"
]


@dataclass(frozen=True)
class Shape:
    """Attributes:
    reason: what decided.
    single_line: not beyond the cursor's line.
    finish_line: not beyond the cursor's line if anything is to be added to it; if it is finished, lines.
    whole_block: the cursor is where a block begins, and the block is wanted.
    """

    reason: ShapeReason
    single_line: bool = False
    finish_line: bool = False
    whole_block: bool = False


def by_text_behind(rest: str) -> Shape:
    """The decision without any syntax: one line if code follows the cursor on it."""
    if CLOSING.fullmatch(rest) is None:
        return Shape("rest-of-line", single_line=True)
    return Shape("line-end")


def shape(place: FilterContext) -> Shape:
    """The decision for a place, by its tree where there is one and that tree makes sense of it."""
    head, rest = place.head, place.rest
    plain = by_text_behind(rest)
    if plain.single_line:
        return plain
    surroundings = place.surroundings
    around: Inside | None = None
    if surroundings is not None:
        around = inside(surroundings.tree.root_node, surroundings.cursor)
    if _opens_text(place, around):
        return Shape("doc-comment")
    if around is not None:
        if around.kind == "comment":
            return Shape("comment", finish_line=True)
        # An empty line in a text of several lines is no different from one in code.
        if head.strip() or not around.several_lines:
            return Shape("string", finish_line=True)
        return Shape("empty-line")
    if surroundings is None or surroundings.faults:
        by_look = place_in_line(head, place.language_id)
        if by_look != "code":
            return Shape(by_look, finish_line=True)
    if head.strip():
        if opens_block(head, place.language_id):
            return Shape("block-start", whole_block=True)
        return plain
    if _in_empty_body(place):
        return Shape("empty-body", whole_block=True)
    return Shape("empty-line")


def _opens_text(place: FilterContext, around: Inside | None) -> bool:
    """The line up to the cursor begins a comment or documentation of several lines and says nothing yet."""
    if COMMENT_OPENING.match(place.head):
        return True
    if not TEXT_OPENING.match(place.head):
        return False
    if around is not None and around.kind == "string":
        return not around.several_lines or place.before[: -len(place.head)].count('"""') % 2 == 0
    # An unclosed one swallows what follows, and the tree is of no use. It documents what stands above.
    return not place.line_above or opens_block(place.line_above, place.language_id)


def _in_empty_body(place: FilterContext) -> bool:
    above, below = place.line_above, place.line_below
    return opens_block(above, place.language_id) and (not below or _columns(below) <= _columns(above))


def _columns(line: str) -> int:
    return indent_columns(line[: len(line) - len(line.lstrip())])
