"""Markdown code fences, which instruction-tuned models put around code."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext

_OPENING = re.compile(r"\A\s*```[^\n`]*(?:\n|\Z)")
_FENCE_LINE = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
# Languages in whose documents fences are ordinary text.
_MARKUP = frozenset({"markdown", "mdx", "quarto", "rmd", "restructuredtext", "asciidoc"})


def fences(text: str, context: FilterContext) -> str | None:
    """Take off an opening fence and cut at a closing one; None if nothing is left."""
    if context.language_id in _MARKUP or "```" not in text:
        return text
    text = _OPENING.sub("", text, count=1)
    closing = _FENCE_LINE.search(text)
    if closing is not None:
        text = text[: closing.start()].removesuffix("\n")
    return text or None
