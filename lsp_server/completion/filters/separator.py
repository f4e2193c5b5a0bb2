"""Separators at the end of a suggestion that stand behind the cursor already."""

from __future__ import annotations

from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.ranges import item_range

_SEPARATORS = frozenset(";,:")


def separator(text: str, context: FilterContext) -> str | None:
    """Drop the separator that the text behind what the suggestion replaces would write a second time.

    In ``log("‸");`` a client that replaces text is given the quote and the bracket anew, and the semicolon
    stays. Others never get as far as that: ``suffix-overlap`` cuts before the quote. In JSON no comma may
    stand before the bracket that follows, also on the next line.
    """
    written = text.rstrip()
    if written[-1:] not in _SEPARATORS:
        return text
    covered = item_range(0, text, context.rest, replaces_rest=context.replaces_rest).end
    stays = context.rest[covered:].strip()
    if context.language_id == "json" and written[-1] == ",":
        follows = stays or context.line_below.strip()
        if follows.startswith(("}", "]")):
            return written[:-1].rstrip() or None
    if not context.replaces_rest or not covered or not stays:
        return text
    # A semicolon before a parenthesis that stays separates nothing either.
    if stays[0] == written[-1] or (stays[0] in ")]" and written[-1] == ";"):
        return written[:-1] or None
    return text
