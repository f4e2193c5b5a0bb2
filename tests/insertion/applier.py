"""An editor's side of LSP 3.18, written from the specification and importing nothing of the server.

"Text Documents": lines end with ``\\n``, ``\\r\\n`` or ``\\r`` and with nothing else. "Position": columns
count code units of the negotiated encoding; one past the end of a line means its end. "Text Edit": the
text of the range is replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

Place = tuple[int, int]
"""Line, and column in characters."""


@lru_cache(maxsize=16)
def line_spans(text: str) -> tuple[tuple[int, int, int], ...]:
    """Start, end without line end, and end of each line; the last line has no line end."""
    spans = []
    start = 0
    while True:
        ends = [at for at in (text.find("\r", start), text.find("\n", start)) if at >= 0]
        if not ends:
            spans.append((start, len(text), len(text)))
            return tuple(spans)
        at = min(ends)
        stop = at + (2 if text[at : at + 2] == "\r\n" else 1)
        spans.append((start, at, stop))
        start = stop


def width(char: str, encoding: str) -> int:
    """Code units of one character."""
    code = ord(char)
    if encoding == "utf-8":
        return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
    return 2 if encoding == "utf-16" and code > 0xFFFF else 1


def units(line: str, column: int, encoding: str) -> int:
    """The column in code units of the character at ``column``."""
    counts = Counter(line[:column])
    return sum(count * width(char, encoding) for char, count in counts.items())


def offset(text: str, position: Mapping[str, int], encoding: str) -> int:
    """Index into ``text`` of an LSP position.

    Raises:
        ValueError: the position is inside a character. Past the end of the line it is the line's end.
    """
    spans = line_spans(text)
    if position["line"] >= len(spans):
        return len(text)
    at, end, _ = spans[position["line"]]
    left = position["character"]
    while left > 0 and at < end:
        left -= width(text[at], encoding)
        at += 1
    if left < 0:
        raise ValueError(f"{position} is inside a character")
    return at


def position(text: str, at: int, encoding: str) -> dict[str, int]:
    """The LSP position of an index into ``text`` that is not inside a line end."""
    for number, (start, end, stop) in enumerate(line_spans(text)):
        if at <= end or stop == len(text) == end:
            return {"line": number, "character": units(text[start:end], at - start, encoding)}
    raise ValueError(f"{at} is not in the text")


def apply_edit(text: str, range: Mapping[str, Any], new: str, encoding: str) -> str:
    """``text`` with the text of ``range`` replaced by ``new``."""
    start = offset(text, range["start"], encoding)
    end = offset(text, range["end"], encoding)
    if end < start:
        raise ValueError("the range ends before it begins")
    return text[:start] + new + text[end:]


def items_of(result: Any) -> list[dict[str, Any]]:
    """The items of a result: ``InlineCompletionItem[] | InlineCompletionList | null``."""
    if result is None:
        return []
    return list(result["items"] if isinstance(result, dict) else result)


def accept(text: str, item: Mapping[str, Any], cursor: int, encoding: str, eol: str) -> str:
    """The text after accepting ``item``; the editor writes its own line end for ``\\n``."""
    at = position(text, cursor, encoding)
    new = item["insertText"].replace("\n", eol)
    return apply_edit(text, item.get("range") or {"start": at, "end": at}, new, encoding)
