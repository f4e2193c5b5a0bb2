"""Brackets that the text below the cursor closes already, or that nothing opened."""

from __future__ import annotations

from inference.stops import CLOSERS, OPENERS
from lsp_server.completion.filters.bracket_scan import Bracket, brackets_in, push
from lsp_server.completion.filters.context import FilterContext


def brackets(text: str, context: FilterContext) -> str | None:
    """Cut before a closing bracket that is one too many; None if nothing is left.

    The first line below that closes something opened above it tells what must be open at the end of the
    suggestion: a bracket of its kind, on a line of its indentation. If that was so before the suggestion
    closed it, and is not so at the end, the suggestion is cut there. Code that is not laid out like this
    is left alone. Brackets that stand behind the cursor on its line are the filter ``suffix-overlap``'s.
    """
    if not any(char in CLOSERS for char in text) or any(
        char in CLOSERS or char in OPENERS for char in context.rest
    ):
        return text
    before = "\n".join((*context.lines_above, context.head))
    wanted = _closed_below(context)
    stack: list[Bracket] = []
    odd = False
    given: int | None = None
    lowest = 0
    cut: int | None = None
    for found in brackets_in(before + text, context.language_id):
        if found.at < len(before):
            odd |= push(stack, found) is None and found.char in CLOSERS
            continue
        if given is None:
            given = lowest = len(stack)
        if found.char in CLOSERS:
            if wanted is not None and _fits(stack, wanted):
                cut = found.at
            if not stack and context.from_start and not odd:
                return _before(text, found.at - len(before))
        push(stack, found)
        lowest = min(lowest, len(stack))
    if given is None or wanted is None or cut is None or lowest == given or _fits(stack, wanted):
        return text
    return _before(text, cut - len(before))


def _closed_below(context: FilterContext) -> Bracket | None:
    """The first bracket below that closes something from above, if its line begins with it."""
    stack: list[Bracket] = []
    for found in brackets_in("\n".join(context.lines_below), context.language_id):
        if push(stack, found) is None and found.char in CLOSERS:
            return found if found.leads else None
    return None


def _fits(stack: list[Bracket], wanted: Bracket) -> bool:
    if not stack:
        return False
    return OPENERS[stack[-1].char] == wanted.char and stack[-1].indent == wanted.indent


def _before(text: str, end: int) -> str | None:
    return text[:end].rstrip() or None
