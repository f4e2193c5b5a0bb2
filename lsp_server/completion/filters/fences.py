"""Markdown code fences, which instruction-tuned models put around code."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext
from lsp_server.documents.text_marks import marks_of, open_mark

_OPENING = re.compile(r"\A\s*```[^\n`]*(?:\n|\Z)")
_FENCE_LINE = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
# Up to three lines of prose before the fence: a capital letter, some words, an end of a sentence.
_CHATTER = re.compile(r"\A\s*(?:[A-Z][^\n`]*\s[^\n`]*[.:!?]\s*\n+){1,3}(?=[ \t]*```)")
# The begin of a comment of several lines. Behind other characters it is part of a path, as in "src/*".
_COMMENT = re.compile(r"(?<!\S)/\*")
# Languages in whose documents fences are ordinary text.
_MARKUP = frozenset({"markdown", "mdx", "quarto", "rmd", "restructuredtext", "asciidoc"})


def fences(text: str, context: FilterContext) -> str | None:
    """Take off an opening fence, with the words before it, and cut at a closing one; None if nothing is left.

    A document that has fences near the cursor (in a docstring) is left alone, and so is a fence in a
    docstring or a comment of several lines.
    """
    if context.language_id in _MARKUP or "```" not in text:
        return text
    if any("```" in line for line in (*context.lines_above, context.head, *context.lines_below)):
        return text
    before = context.before or context.head
    if not _in_prose(before, context.language_id):
        text = _OPENING.sub("", _CHATTER.sub("", text, count=1), count=1)
    for closing in _FENCE_LINE.finditer(text):
        if not _in_prose(before + text[: closing.start()], context.language_id):
            text = text[: closing.start()].removesuffix("\n")
            break
    return text or None


def _in_prose(before: str, language_id: str) -> bool:
    """Whether a docstring or a comment of several lines is open at the end of ``before``."""
    # A fence would be three marks of its own where a backtick is one.
    marks = tuple(mark for mark in marks_of(language_id) if mark != "`")
    comments = [match.start() for match in _COMMENT.finditer(before)]
    return bool(open_mark(before, marks)) or (bool(comments) and comments[-1] > before.rfind("*/"))
