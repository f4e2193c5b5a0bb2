"""Loops: the same line, or the same few lines, over and over."""

from __future__ import annotations

from lsp_server.completion.filters.context import FilterContext

MAX_REPEATS = 3
MAX_PERIOD = 4


def repetition(text: str, context: FilterContext) -> str | None:
    """Cut where a group of 1 to 4 lines comes for the third time in a row; one copy is kept.

    Blank lines and lines without a letter or digit (closing brackets) are no loop by themselves.
    """
    lines = text.split("\n")
    # The first line goes on behind the cursor, so it is compared as it will stand in the document.
    whole = [context.head + lines[0], *lines[1:]]
    for end in range(len(whole)):
        for period in range(1, MAX_PERIOD + 1):
            start = end + 1 - period * MAX_REPEATS
            if start < 0:
                break
            group = whole[start : start + period]
            if not any(char.isalnum() for line in group for char in line):
                continue
            if all(
                whole[start + copy * period : start + (copy + 1) * period] == group
                for copy in range(1, MAX_REPEATS)
            ):
                return "\n".join(lines[: start + period])
    return text
