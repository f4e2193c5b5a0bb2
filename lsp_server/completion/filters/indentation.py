"""Indentation that already stands before the cursor."""

from __future__ import annotations

from inference.lines import indent_columns
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.scope import opens_block


def indentation(text: str, context: FilterContext) -> str | None:
    """Take off blanks that the model put behind the indentation of an otherwise empty line.

    They stay where the line above opens a block and the cursor is not yet deeper than that line. Lines
    that follow at the doubled indentation move back along with the first.
    """
    head, first = context.head, text.split("\n", 1)[0]
    extra = first[: len(first) - len(first.lstrip(" \t"))]
    if not extra or not first.strip() or not head or head.strip():
        return text
    above = context.line_above
    above_indent = above[: len(above) - len(above.lstrip())]
    if opens_block(above) and indent_columns(head) <= indent_columns(above_indent):
        return text
    lines = text[len(extra) :].split("\n")
    for number in range(1, len(lines)):
        if lines[number].startswith(head + extra):
            lines[number] = head + lines[number][len(head + extra) :]
        elif lines[number].strip():
            break
    return "\n".join(lines)
