"""White space at the end of a suggestion and of its lines."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext

_LINE_TAIL = re.compile(r"[ \t]+(?=\n)")


def trailing_space(text: str, context: FilterContext) -> str | None:
    """Drop blanks before line ends, and all white space at the end.

    A blank in front of text that stays on the line is kept: it may separate two words. So is the
    white space of a text that has nothing else, which the filter ``blank`` judges.
    """
    if not text.strip():
        return text
    stripped = text.rstrip("\n") if context.rest.strip() else text.rstrip()
    first, newline, others = stripped.partition("\n")
    if not newline:
        return stripped
    return _LINE_TAIL.sub("", f"{first}\n{others}")
