"""Suggestions that say what stands behind the cursor, and nothing else."""

from __future__ import annotations

from inference.lines import is_distinctive
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.line_match import folded, same_indent


def repeats_suffix(text: str, context: FilterContext) -> str | None:
    """None if the text after the cursor begins with the suggestion, but for blanks and separators.

    Behind the cursor on its line, the suggestion must be distinctive, or as long as that rest. Lines
    below must be two at least, equally indented: one line is the filter ``duplicate-line``'s.
    """
    if not text.strip():
        return text
    if context.rest.strip():
        if folded(text) == folded(context.rest):
            return None
        after = (context.rest, *context.lines_below)
        return None if is_distinctive(text) and _begins(after, text.split("\n")) else text
    lines = (context.head + text if text.lstrip(" \t")[:1] != "\n" else text).split("\n")
    filled = [line for line in lines if line.strip()]
    below = [line for line in context.lines_below if line.strip()]
    if len(filled) < 2 or not below or not same_indent(filled[0], below[0]):
        return text
    return None if is_distinctive(text) and _begins(below, filled) else text


def _begins(after: tuple[str, ...] | list[str], lines: list[str]) -> bool:
    """Whether ``lines`` are the first of ``after``, the last one up to the end of a word."""
    filled = [line for line in lines if line.strip()]
    after = [line for line in after if line.strip()][: len(filled)]
    if len(after) < len(filled) or [*map(folded, filled[:-1])] != [*map(folded, after[:-1])]:
        return False
    last, whole = folded(filled[-1]), folded(after[-1])
    next_char = whole[len(last) : len(last) + 1]
    return whole.startswith(last) and not (next_char.isalnum() and last[-1:].isalnum())
