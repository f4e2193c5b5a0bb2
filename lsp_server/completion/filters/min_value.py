"""Suggestions not worth a look."""

from __future__ import annotations

from inference.stops import CLOSERS
from lsp_server.completion.filters.bracket_scan import Bracket, brackets_in, push
from lsp_server.completion.filters.context import FilterContext

_QUOTES = "\"'`"
# Ends of comments and of long strings.
_ENDS = ("*/", "-->", '"""', "'''")


def min_value(text: str, context: FilterContext) -> str | None:
    """None for a text without a letter or digit that closes nothing either.

    Editors write closing brackets and semicolons by themselves, or the user does in one stroke.
    """
    if any(char.isalnum() for char in text) or _closes(text, context):
        return text
    return None


def _closes(text: str, context: FilterContext) -> bool:
    """Whether it closes a bracket, string or comment that is open at the cursor."""
    if any(end in text for end in _ENDS):
        return True
    first = text.lstrip()[:1]
    if first in _QUOTES and context.head.count(first) % 2 and first not in context.rest:
        return True
    before = "\n".join((*context.lines_above, context.head))
    stack: list[Bracket] = []
    for found in brackets_in(before + text, context.language_id):
        had = len(stack)
        closes = push(stack, found) is not None
        if found.at < len(before) or found.char not in CLOSERS:
            continue
        if context.rest.lstrip().startswith(found.char):
            return False
        # Above the lines that are seen, something may be open.
        if closes or (not had and not context.from_start):
            return True
    return False
