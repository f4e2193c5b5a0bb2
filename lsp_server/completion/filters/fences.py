"""Markdown code fences, which instruction-tuned models put around code."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext

_OPENING = re.compile(r"\A\s*```[^\n`]*(?:\n|\Z)")
_FENCE_LINE = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
# Up to three lines of prose before the fence: a capital letter, some words, an end of a sentence.
_CHATTER = re.compile(r"\A\s*(?:[A-Z][^\n`]*\s[^\n`]*[.:!?]\s*\n+){1,3}(?=[ \t]*```)")
# Languages in whose documents fences are ordinary text.
_MARKUP = frozenset({"markdown", "mdx", "quarto", "rmd", "restructuredtext", "asciidoc"})


def fences(text: str, context: FilterContext) -> str | None:
    """Take off an opening fence, with the words before it, and cut at a closing one; None if nothing is left.

    A document that has fences near the cursor (in a docstring) is left alone.
    """
    if context.language_id in _MARKUP or "```" not in text:
        return text
    if any("```" in line for line in (*context.lines_above, context.head, *context.lines_below)):
        return text
    text = _OPENING.sub("", _CHATTER.sub("", text, count=1), count=1)
    closing = _FENCE_LINE.search(text)
    if closing is not None:
        text = text[: closing.start()].removesuffix("\n")
    return text or None
