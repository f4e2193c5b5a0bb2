"""Indentation in the model's unit where the buffer has another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.indent_style import heads_block, leading_blanks

# Parentheses or a keyword before the brace, or a colon.
_PLAIN_HEAD = re.compile(r"(?:\)|\belse|\btry|\bfinally|\bdo)\s*\{\s*\Z|:\s*\Z")
# A line that the next one continues, at whatever indentation.
_GOES_ON = (",", "(", "[", "=", "+", "-", "|", "&", "\\")
_UNITS = ("\t", " " * 4, " " * 2, " " * 8, " " * 3)


def indent_unit(text: str, context: FilterContext) -> str | None:
    """Rewrite the indentation of the suggestion's lines in the unit of the buffer.

    Only where the buffer's unit explains the lines badly and one other explains each of them: a line
    behind the head of a block is one level deeper, one behind any other line is not deeper. Lines that
    are aligned to something, mixtures of tabs and spaces, or a cursor's line that is itself not in the
    buffer's unit leave all as it is.
    """
    unit = context.indent_unit
    lines = text.split("\n")
    # The first line goes on behind the cursor; only at the left margin is its indentation the model's.
    first = 0 if not context.head and lines[0].strip() else 1
    anchor = context.line_above if first == 0 else context.head + lines[0]
    written = [line for line in lines[first:] if line.strip()]
    level = _levels(_blanks(anchor), unit) if unit else None
    if level is None or not written:
        return text
    heads = [anchor, *written]
    own = [level, *(_levels(_blanks(line), unit) for line in written)]
    if _explained(heads, own):
        return text
    for other in _UNITS:
        levels = [level, *(_read(_blanks(line), other, unit, level) for line in written)]
        if other != unit and _explained(heads, levels) and _certain(heads, levels, own):
            return _rewritten(lines, first, [unit * (count or 0) for count in levels[1:]])
    return text


def _rewritten(lines: list[str], first: int, indents: list[str]) -> str:
    following = iter(indents)
    changed = [next(following) + line.lstrip(" \t") if line.strip() else line for line in lines[first:]]
    return "\n".join([*lines[:first], *changed])


def _blanks(line: str) -> str:
    return line[: leading_blanks(line)]


def _levels(blanks: str, unit: str) -> int | None:
    count = len(blanks) // len(unit)
    return count if blanks == unit * count else None


def _read(blanks: str, other: str, unit: str, level: int) -> int | None:
    """Levels of an indentation written in ``other``.

    Where both units are spaces, the model goes on from the columns it was shown: behind a line at 4
    columns, one that takes 2 a level writes 6.
    """
    if "\t" in (other, unit):
        return _levels(blanks, other)
    base = unit * level
    if not blanks.startswith(base):
        return _levels(blanks, unit)
    more = _levels(blanks[len(base) :], other)
    return None if more is None else level + more


def _explained(heads: Sequence[str], levels: Sequence[int | None]) -> bool:
    before = levels[0]
    for head, level in zip(heads, levels[1:], strict=False):
        if level is None or before is None:
            return False
        if heads_block(head):
            if level != before + 1:
                return False
        elif level > before or head.rstrip().endswith(_GOES_ON):
            return False
        before = level
    return True


def _certain(heads: Sequence[str], levels: Sequence[int | None], own: Sequence[int | None]) -> bool:
    """Whether the lines show their unit.

    A step into a block does, and a first line as deep as the one before it. Lines that the buffer's unit
    can express too, only with steps of more levels, may be the buffer's own way to lay out a lambda or a
    list: there it takes the head of a function or statement, or two steps.
    """
    steps = [head for head in heads[:-1] if heads_block(head)]
    if None in own:
        return bool(steps) or (levels[0] == levels[1] != 0)
    return len(steps) > 1 or any(_PLAIN_HEAD.search(head) for head in steps)
