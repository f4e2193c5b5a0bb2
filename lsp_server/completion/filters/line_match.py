"""When two lines count as the same."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from inference.lines import indent_columns

# Share of the characters, without blanks, that must agree: a name or an operator may differ.
SIMILAR = 0.85
# Shorter lines are similar by chance.
MIN_SIMILAR_CHARS = 12
_BLANKS = re.compile(r"\s+")
_TRAILING = ",;"


def folded(line: str) -> str:
    """The line without blanks, a separator at its end, or a choice of quotes."""
    return _BLANKS.sub("", line).rstrip(_TRAILING).replace("'", '"')


def same_indent(line: str, other: str) -> bool:
    """Whether both lines are indented by the same number of columns."""
    return columns(line) == columns(other)


def is_similar(line: str, other: str) -> bool:
    """Whether two lines agree but for a small part."""
    one, two = folded(line), folded(other)
    if min(len(one), len(two)) < MIN_SIMILAR_CHARS:
        return one == two
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    return matcher.real_quick_ratio() >= SIMILAR and matcher.quick_ratio() >= SIMILAR <= matcher.ratio()


def columns(line: str) -> int:
    """Width of the line's indentation."""
    return indent_columns(line[: len(line) - len(line.lstrip())])
