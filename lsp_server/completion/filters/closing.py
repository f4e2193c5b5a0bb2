"""Brackets, quotes and blocks that a suggestion opens and leaves open."""

from __future__ import annotations

import re
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
# Lines that open a block, and the word that ends it. What matches wrongly is found out by the parser.
_WORDS = {
    "ruby": (
        (re.compile(r"\s*(?:\w+ )?(?:def|class|module|if|unless|while|until|case|begin|for)\b"), "end"),
        (re.compile(r".*\bdo(?: \|[^|]*\|)?$"), "end"),
    ),
    "lua": (
        (re.compile(r"(?!\s*elseif).*\b(?:then|do)$"), "end"),
        (re.compile(r".*\bfunction\b[^()]*\([^()]*\)$"), "end"),
    ),
    "shellscript": (
        (re.compile(r"\s*if\b"), "fi"),
        (re.compile(r"\s*(?:for|while|until)\b"), "done"),
        (re.compile(r"\s*case\b"), "esac"),
    ),
}
_ENDS = re.compile(r"(?:.*\s|\s*)(?:end|fi|done|esac)$|\s*end\b")


@dataclass(frozen=True)
class _Open:
    closer: str
    line: int


def closed(text: str, head: str, rest: str, language_id: str) -> Iterator[str]:
    """``text`` with what it leaves open closed, in the spellings that may be meant; none if nothing is open.

    A bracket that was opened on an earlier line is closed on a line of its own, as deep as that line,
    unless text follows the cursor. Where no bracket is open, a block may be that ends with a word.

    Args:
        head: the cursor's line up to the cursor, which is in code.
        rest: that line behind the cursor.
    """
    stack = _left_open(text, quotes_of(language_id))
    ends = text.rstrip()
    lines = (head + ends).split("\n")
    if not stack:
        if not rest.strip() and (words := _words(lines, canonical(language_id))):
            yield "\n".join([ends, *words])
        return
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


def _words(lines: list[str], language: str) -> list[str]:
    """The lines that end the blocks which ``lines`` open, inner ones first."""
    stack: list[str] = []
    for line in map(str.rstrip, lines):
        if _ENDS.match(line):
            del stack[-1:]
            continue
        for opener, word in _WORDS.get(language, ()):
            if opener.match(line):
                stack.append(line[: len(line) - len(line.lstrip())] + word)
                break
    return stack[::-1]


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
