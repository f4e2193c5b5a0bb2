"""Lines above the cursor that the suggestion writes again."""

from __future__ import annotations

from inference.lines import is_distinctive
from lsp_server.completion.filters.context import FilterContext

MIN_LINES = 3
# Of which this many say something.
MIN_DISTINCTIVE = 2


def repeats_above(text: str, context: FilterContext) -> str | None:
    """Cut before lines that copy the 3 or more lines right above them; None if nothing is left.

    Blank lines do not count. A copy that the suggestion leaves before its end is none: repeated code
    that differs somewhere is what people write with a completion.
    """
    above = [line.rstrip() for line in context.lines_above if line.strip()]
    lines = text.split("\n")
    whole = [context.head + lines[0], *lines[1:]]
    filled = [number for number, line in enumerate(whole) if line.strip()]
    written = [whole[number].rstrip() for number in filled]
    if filled and filled[0] == 0 and not lines[0].strip():
        # The suggestion begins behind the cursor's line, which is then one of those above.
        above.append(written[0])
        del filled[0], written[0]
    for start, number in enumerate(filled):
        before = [*above, *written[:start]]
        for size in range(MIN_LINES, len(written) - start + 1):
            copy = written[start : start + size]
            if before[-size:] != copy or sum(map(is_distinctive, copy)) < MIN_DISTINCTIVE:
                continue
            if _goes_on(written[start + size :], copy):
                return "\n".join(lines[:number]).rstrip() or None
    return text


def _goes_on(lines: list[str], copy: list[str]) -> bool:
    """Whether the lines are further copies, the last one perhaps broken off."""
    expected = [copy[number % len(copy)] for number in range(len(lines))]
    return lines[:-1] == expected[:-1] and (not lines or expected[-1].startswith(lines[-1]))
