"""White space at the end of a suggestion and of its lines."""

from __future__ import annotations

import re

from inference.stops import CLOSERS
from lsp_server.completion.filters.context import FilterContext

_LINE_TAIL = re.compile(r"[ \t]+(?=\n)")


def trailing_space(text: str, context: FilterContext) -> str | None:
    """Drop blanks before line ends, and all white space at the end.

    A blank in front of text that stays on the line is kept: it may separate two words. So is a line end
    behind several lines, in front of a bracket: it puts that on a line of its own. And so is the white space
    of a text that has nothing else, which the filter ``blank`` judges.
    """
    if not text.strip():
        return text
    bare = text.rstrip()
    stripped = text.rstrip("\n") if context.rest.strip() else bare
    if "\n" in bare and context.rest.lstrip()[:1] in CLOSERS:
        _, newline, indent = text[len(bare) :].rpartition("\n")
        stripped = bare + newline + indent
    first, newline, others = stripped.partition("\n")
    if not newline:
        return stripped
    return _LINE_TAIL.sub("", f"{first}\n{others}")
