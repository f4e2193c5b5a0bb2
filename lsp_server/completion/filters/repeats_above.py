"""Lines above the cursor that the suggestion writes again."""

from __future__ import annotations

from itertools import accumulate

from inference.lines import is_distinctive
from lsp_server.completion.filters.context import FilterContext

MIN_LINES = 3
# Of which this many say something.
MIN_DISTINCTIVE = 2
# A longer copy is none of what is looked at above, and every size is looked for.
MAX_LINES = 64


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
    # How many lines say something, up to each one.
    telling = [0, *accumulate(map(is_distinctive, written))]
    starts = [
        start
        for size in range(MIN_LINES, min(MAX_LINES, len(written)) + 1)
        if (start := _first_copy(above, written, telling, size)) is not None
    ]
    if not starts:
        return text
    return "\n".join(lines[: filled[min(starts)]]).rstrip() or None


def _first_copy(above: list[str], written: list[str], telling: list[int], size: int) -> int | None:
    """The first of the written lines from which on all equal those ``size`` lines before them, at least
    ``size`` of them and the last one perhaps broken off; None if there is none."""
    lines = [*above[-size:], *written]
    base = len(lines) - len(written)
    last = len(lines) - 1
    if last < size or not lines[last - size].startswith(lines[last]):
        return None
    first = last
    while first - 1 >= max(base, size) and lines[first - 1] == lines[first - 1 - size]:
        first -= 1
    # What is broken off belongs to a further copy.
    whole = lines[last] == lines[last - size]
    for start in range(first - base, len(written) - size + whole):
        if telling[start + size] - telling[start] >= MIN_DISTINCTIVE:
            return start
    return None
