"""Brackets and quotes that a suggestion opens and leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inference.stops import CLOSERS, OPENERS
from lsp_server.documents.languages import canonical
from lsp_server.documents.lexical import quotes_of

# Languages whose statements end with one.
_SEMICOLON = frozenset(
    [
        "c",
        "cpp",
        "csharp",
        "dart",
        "java",
        "javascript",
        "javascriptreact",
        "objective-c",
        "objective-cpp",
        "php",
        "rust",
        "typescript",
        "typescriptreact",
    ]
)


@dataclass(frozen=True)
class _Open:
    closer: str
    line: int


def closed(text: str, head: str, rest: str, language_id: str) -> Iterator[str]:
    """``text`` with what it leaves open closed, in the spellings that may be meant; none if nothing is open.

    A bracket that was opened on an earlier line is closed on a line of its own, as deep as that line,
    unless text follows the cursor.

    Args:
        head: the cursor's line up to the cursor, which is in code.
        rest: that line behind the cursor.
    """
    stack = _left_open(text, quotes_of(language_id))
    if not stack:
        return
    ends = text.rstrip()
    lines = (head + ends).split("\n")
    last = len(lines) - 1
    for opened in reversed(stack):
        line = lines[opened.line]
        if not rest.strip() and (opened.line != last or (opened.closer == "}" and line.endswith("{"))):
            ends += "\n" + line[: len(line) - len(line.lstrip())]
            last = opened.line
        ends += opened.closer
    yield ends
    if canonical(language_id) in _SEMICOLON:
        yield ends + ";"


def _left_open(text: str, quotes: str) -> list[_Open]:
    stack: list[_Open] = []
    quote, line, at = "", 0, 0
    while at < len(text):
        char = text[at]
        if char == "\n":
            line += 1
            quote = quote if quote == "`" else ""
        elif char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in quotes:
            quote = char
        elif char in OPENERS:
            stack.append(_Open(OPENERS[char], line))
        elif char in CLOSERS and stack and stack[-1].closer == char:
            stack.pop()
        at += 1
    if quote:
        stack.append(_Open(quote, line))
    return stack
