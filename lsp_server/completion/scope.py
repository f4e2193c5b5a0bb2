"""How far a later line must be indented to belong to the scope of the cursor."""

from __future__ import annotations

from inference.stops import indent_columns

# What the head of a block or of a list of arguments ends with, across the languages we parse.
_OPENERS = (":", "{", "(", "[", "=>", "->", " do", " then")


def opens_block(line: str) -> bool:
    """Whether a line ends with the head of a block or list."""
    return line.rstrip().endswith(_OPENERS)


def scope_indent(head: str) -> int | None:
    """Columns for `StopRules.min_indent`, given the cursor's line up to the cursor.

    A line that opens a block is followed by deeper ones; a line at its own depth is already the next
    statement or a sibling definition, which nobody asked for. None where the text says nothing: at
    the left margin, or on an empty line whose indentation the model still has to choose.
    """
    code = head.strip()
    blanks = head[: len(head) - len(head.lstrip())]
    columns = indent_columns(blanks)
    if opens_block(code):
        return columns + 1
    return columns or None
