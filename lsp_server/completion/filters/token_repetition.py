"""Loops within a line: the same few tokens over and over."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext

_TOKEN = re.compile(r"\w+|[^\w\s]")
MAX_PERIOD = 8
# At the end of the text, where the loop may have had no end; and where the line goes on behind it.
MIN_COPIES_AT_END = 5
MIN_COPIES = 9
# A row of numbers may be a table.
MIN_COPIES_OF_NUMBERS = 16
# Characters before the cursor that can hold so many.
_HEAD_CHARS = 2000
# Letters and digits in all copies together.
MIN_LETTERS = 20


def token_repetition(text: str, context: FilterContext) -> str | None:
    """Cut before the line in which 1 to 8 tokens repeat themselves; None if it is the first line.

    What a line repeats before the cursor counts too. Rulers and the like, without a letter or digit, may
    repeat.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        whole = context.head[-_HEAD_CHARS:] + line if number == 0 else line
        new = len(_TOKEN.findall(line))
        if _loops(_TOKEN.findall(whole), new, last=number == len(lines) - 1):
            return "\n".join(lines[:number]).rstrip() or None
    return text


def _loops(tokens: list[str], new: int, *, last: bool) -> bool:
    """Whether the last ``new`` tokens have a loop; ``last``: no line follows, and the last token
    may be broken off."""
    for period in range(1, min(MAX_PERIOD, len(tokens) // MIN_COPIES_AT_END) + 1):
        run = 0
        for at in range(period, len(tokens)):
            end = last and at == len(tokens) - 1
            again = tokens[at - period].startswith(tokens[at]) if end else tokens[at - period] == tokens[at]
            run = run + 1 if again else 0
            copies = run // period + 1
            if copies < MIN_COPIES_AT_END or at < len(tokens) - new:
                continue
            group = "".join(tokens[at - period + 1 : at + 1])
            alnum = sum(char.isalnum() for char in group)
            if not alnum or alnum * copies < MIN_LETTERS:
                continue
            needed = MIN_COPIES_AT_END if end else MIN_COPIES
            if not any(char.isalpha() for char in group):
                needed = MIN_COPIES_OF_NUMBERS if end else len(tokens) + 1
            if copies >= needed:
                return True
    return False
