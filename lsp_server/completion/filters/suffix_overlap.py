"""Text after the cursor that the suggestion repeats."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext

_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = frozenset(_OPENERS.values())
QUOTES = frozenset("\"'`")
# Quotes of strings that go over several lines.
LONG_QUOTES = ('"""', "'''")
# What editors insert behind the cursor by themselves, and may follow it at a statement's end.
CLOSING = re.compile(r"[)\]}>\"'`;,:\s]*")


def suffix_overlap(text: str, context: FilterContext) -> str | None:
    """Drop the tail of the suggestion that stands behind the cursor already.

    Where the rest of the line is closing punctuation, the suggestion is cut at the bracket or quote
    that would close the same thing a second time, unless the client replaces that text (then
    completion/ranges.py covers it). Any other rest is matched as a whole at the suggestion's end.
    """
    rest = context.rest.strip()
    if not rest:
        return text
    if (rest[0] in _CLOSERS or rest[0] in QUOTES or rest[0] == ">") and CLOSING.fullmatch(rest):
        cut = second_closing(text, rest)
        # Where a tag of several lines ends is not known by its first line.
        if cut is not None or rest[0] != ">" or "\n" not in text:
            return text if cut is None or context.replaces_rest else text[:cut] or None
    first, newline, _ = text.partition("\n")
    if newline and rest[0] != ">" and CLOSING.fullmatch(rest) and first.rstrip().endswith(rest):
        # ":" or ";" stands behind the cursor: what follows it here would follow it a second time.
        return first.rstrip()[: -len(rest)] or None
    trimmed = text.rstrip()
    if trimmed.endswith(rest) and _is_boundary(trimmed, rest):
        return trimmed[: -len(rest)] or None
    return text


def second_closing(text: str, rest: str) -> int | None:
    """Index in ``text`` of the bracket or quote that ``rest``, closing punctuation, begins with and
    that closes something opened before the cursor; None if there is none."""
    wanted = rest[0]
    if rest.startswith(LONG_QUOTES):
        return _unescaped(text, rest[:3])
    if wanted in QUOTES:
        return _unescaped(text, wanted)
    if wanted == ">":
        return _second_angle(text)
    if wanted not in _CLOSERS:
        return None
    stack: list[str] = []
    quote = ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if quote:
            if char in (quote, "\n"):
                quote = ""
        elif char in QUOTES:
            quote = char
        elif char in _OPENERS:
            stack.append(_OPENERS[char])
        elif char in _CLOSERS:
            if stack and stack[-1] == char:
                stack.pop()
            elif not stack:
                return at if char == wanted else None
        at += 1
    return None


def _is_boundary(text: str, rest: str) -> bool:
    """A one-letter rest inside a longer word of the suggestion is a coincidence, not a repetition."""
    before = text[: -len(rest)]
    return not (before and _is_word(before[-1]) and _is_word(rest[0]))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _unescaped(text: str, quote: str) -> int | None:
    """Where ``quote`` stands; one of a single character ends with its line."""
    at = 0
    while at < len(text) and (text[at] != "\n" or len(quote) > 1):
        if text[at] == "\\":
            at += 2
            continue
        if text.startswith(quote, at):
            return at
        at += 1
    return None


def _second_angle(text: str) -> int | None:
    """Where the first line has a ``>`` without a ``<``, outside of brackets and strings."""
    depth = angles = 0
    quote = ""
    for at, char in enumerate(text.partition("\n")[0]):
        if quote:
            quote = "" if char == quote else quote
        elif char in QUOTES:
            quote = char
        elif char in _OPENERS:
            depth += 1
        elif char in _CLOSERS:
            depth -= 1
        elif depth or text[at - 1 : at] in ("-", "=") or text[at + 1 : at + 2] == "=":
            continue
        elif char == "<":
            angles += 1
        elif char == ">":
            if not angles:
                return at
            angles -= 1
    return None
