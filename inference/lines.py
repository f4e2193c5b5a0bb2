"""What a line of code says by itself, in any language."""

from __future__ import annotations

TAB_COLUMNS = 4

# A line with this many letters and digits is not written twice in a row by chance.
DISTINCTIVE = 6


def indent_columns(indent: str) -> int:
    """Width of leading white space; a tab counts as four columns wherever it stands."""
    return sum(TAB_COLUMNS if character == "\t" else 1 for character in indent)


def line_columns(line: str) -> int:
    """Width of the white space that a line begins with."""
    return indent_columns(line[: len(line) - len(line.lstrip())])


def is_distinctive(line: str) -> bool:
    """Whether a line has enough letters and digits to be known again."""
    return sum(character.isalnum() for character in line) >= DISTINCTIVE
