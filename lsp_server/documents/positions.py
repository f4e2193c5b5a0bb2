"""Conversions between the column units of LSP and indices into a Python string.

LSP 3.18 counts columns in the negotiated ``positionEncoding``: bytes of UTF-8, code units of UTF-16
(the default) or code points (UTF-32). Python strings are sequences of code points. Every conversion
of the server happens in this module, on one line of text without its line end.
"""

from __future__ import annotations

from typing import Literal

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")


def to_index(line: str, units: int, encoding: PositionEncoding) -> int:
    """Index into ``line`` of the column ``units``.

    Columns past the end clamp to ``len(line)`` (as the specification asks), negative ones to 0; a
    column inside a character rounds down to that character's start.
    """
    if units <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    # A character takes at least one unit, so nothing past line[:units] matters: this keeps a column
    # near the start of a very long line cheap. One more is kept to see a pair that is cut in half.
    head = line[: units + 1]
    if encoding == "utf-16":
        data = head.encode("utf-16-le", "surrogatepass")
        cut = min(2 * units, len(data))
        if cut < len(data) and _is_low(data, cut) and _is_high(data, cut - 2):
            cut -= 2
        return len(data[:cut].decode("utf-16-le", "surrogatepass"))
    data = head.encode("utf-8", "surrogatepass")
    cut = min(units, len(data))
    while 0 < cut < len(data) and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(data[:cut].decode("utf-8", "surrogatepass"))


def to_units(line: str, index: int, encoding: PositionEncoding) -> int:
    """Column, in units of ``encoding``, of the character at ``index`` (clamped to the line)."""
    index = max(0, min(index, len(line)))
    if encoding == "utf-32" or line.isascii():
        return index
    head = line[:index]
    if encoding == "utf-16":
        return len(head.encode("utf-16-le", "surrogatepass")) // 2
    return len(head.encode("utf-8", "surrogatepass"))


def join_surrogates(text: str) -> str:
    """Join neighbouring halves of surrogate pairs into the character they spell.

    A client whose edit ends inside a pair sends the halves in two messages; kept apart they would
    count as two characters here and as one in every encoder. Halves without a partner stay.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def without_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, one for one: tokenizers and UTF-8 cannot express them."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if 0xD800 <= ord(char) <= 0xDFFF else char for char in text)
    return text


def _is_high(data: bytes, at: int) -> bool:
    return at >= 0 and 0xD8 <= data[at + 1] <= 0xDB


def _is_low(data: bytes, at: int) -> bool:
    return 0xDC <= data[at + 1] <= 0xDF
