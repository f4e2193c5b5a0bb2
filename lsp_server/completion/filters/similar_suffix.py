"""Lines below the cursor that the suggestion writes again, more or less."""

from __future__ import annotations

from itertools import pairwise, takewhile

from inference.lines import is_distinctive
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.line_match import columns, folded, is_similar, same_indent

# The model may leave out, or write anew, this many lines before it falls in step with the text below.
MAX_SKIPPED = 3


def similar_suffix(text: str, context: FilterContext) -> str | None:
    """Cut before a line that the text below the cursor says again; None if nothing is left.

    One line is enough if it is the next one below but for blanks, quotes and a comma or semicolon at its
    end. A line that is only similar must be followed by the line that follows it below: rows of code
    that differ in a name or number are common. Two lines in a row that stand a little further below
    count too. Lines must be equally indented, and say something; what stands behind the end of their block
    is not compared.
    """
    if context.rest.strip():
        return text
    below = [line for line in context.lines_below if line.strip()][: MAX_SKIPPED + 2]
    lines = text.split("\n")
    filled = [number for number in range(1, len(lines)) if lines[number].strip()]
    for index, number in enumerate(filled):
        line = lines[number]
        after = lines[filled[index + 1]] if index + 1 < len(filled) else None
        if _repeats(line, after, below):
            return "\n".join(lines[:number]).rstrip() or None
    return text


def _repeats(line: str, after: str | None, below: list[str]) -> bool:
    below = [*takewhile(lambda other: columns(other) >= columns(line), below)]
    if below and _same(line, below[0]):
        return True
    if after is None:
        return False
    for skipped, (one, two) in enumerate(pairwise(below)):
        if not _same(after, two):
            continue
        if _same(line, one) or (skipped == 0 and same_indent(line, one) and is_similar(line, one)):
            return True
    return False


def _same(line: str, other: str) -> bool:
    return is_distinctive(other) and same_indent(line, other) and folded(line) == folded(other)
