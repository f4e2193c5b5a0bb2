"""The range an item replaces.

Clients disagree about text after the cursor: VS Code lays the item over it, LSP4IJ shows it in front
of the grey text. So the range ends at the cursor, except for clients that handle more (see clients.py).
It never begins before the cursor either, but for the text of a selected popup entry (LSP 3.18,
``selectedCompletionInfo``: items must replace the same range and extend its text).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.completion.filters.suffix_overlap import CLOSING, LONG_QUOTES, QUOTES, second_closing


@dataclass(frozen=True)
class ItemRange:
    """Columns in characters on the cursor's line; contains the cursor."""

    start: int
    end: int


def item_range(
    column: int, insert: str, rest: str, *, replaces_rest: bool, start: int | None = None
) -> ItemRange:
    """The range for ``insert`` at ``column``, with ``rest`` behind it on the line.

    With ``replaces_rest`` each closing bracket or quote behind the cursor that the suggestion brings
    itself is covered; text with words in it is never replaced.
    """
    begin = column if start is None else min(start, column)
    closing = rest.strip()
    if not replaces_rest or not closing or not CLOSING.fullmatch(closing):
        return ItemRange(begin, column)
    covered = 0
    remainder = insert
    while left := closing[covered:].lstrip():
        at = second_closing(remainder, left)
        mark = left[: 3 if left.startswith(LONG_QUOTES) else 1]
        if at is None or (mark[0] in QUOTES and not _closes_string(remainder, mark)):
            break
        remainder = remainder[at + len(mark) :]
        covered = len(closing) - len(left) + len(mark)
    if not covered:
        return ItemRange(begin, column)
    return ItemRange(begin, column + len(rest) - len(rest.lstrip()) + covered)


def _closes_string(text: str, quote: str) -> bool:
    """Whether the string that the cursor stands in is closed at the end of the text's first line, or at the
    end of the text if it may go over several lines.

    A quote that opens another string needs the one behind the cursor.
    """
    line = text if len(quote) > 1 else text.partition("\n")[0]
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{re.escape(quote)}", line)) % 2 == 1
