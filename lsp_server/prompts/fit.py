"""Text made to fit a number of tokens: whole lines where that is possible.

A window is chosen by the tokens of its lines, and their sum is close to the tokens of the whole, not always
above them. What is cut here is text and not tokens, so the prompt shows no half characters, and what is left
has the tokens that the model would see in that text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsp_server.documents.line_index import split_lines

Count = Callable[[str], int]

# A line that is cut is cut at multiples of this share of the limit, so that the cut stays for some keys.
_STEPS = 8


def fit_end(text: str, limit: int, count: Count) -> str:
    """The end of ``text`` with at most ``limit`` tokens: whole lines, or else the end of its last line.

    ``count`` gives the tokens of a text; it is asked for about the logarithm of the number of lines.
    """
    if not text or count(text) <= limit:
        return text
    lines = _lines(text)
    first = _fewest_dropped(len(lines), lambda dropped: count("".join(lines[dropped:])) <= limit)
    if first < len(lines):
        return "".join(lines[first:])
    pieces = _pieces(lines[-1], limit)
    first = _fewest_dropped(len(pieces), lambda dropped: count("".join(pieces[dropped:])) <= limit)
    return "".join(pieces[first:])


def fit_begin(text: str, limit: int, count: Count) -> str:
    """The begin of ``text`` with at most ``limit`` tokens: whole lines, or else the begin of its first."""
    if not text or count(text) <= limit:
        return text
    lines = _lines(text)
    stop = _most_kept(lines, limit, count)
    if stop:
        return "".join(lines[:stop])
    pieces = _pieces(lines[0], limit)
    return "".join(pieces[: _most_kept(pieces, limit, count)])


def _most_kept(parts: Sequence[str], limit: int, count: Count) -> int:
    size = len(parts)
    return size - _fewest_dropped(size, lambda dropped: count("".join(parts[: size - dropped])) <= limit)


def _fewest_dropped(size: int, fits: Callable[[int], bool]) -> int:
    """How many of ``size`` parts must be dropped, by bisection: what is returned fits, or it is all."""
    too_few, enough = 0, size
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if fits(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _lines(text: str) -> list[str]:
    lines = split_lines(text)
    if not lines[-1]:
        lines.pop()
    return lines


def _pieces(line: str, limit: int) -> list[str]:
    """A line in pieces of equal length; of single characters where there is hardly any room."""
    step = max(1, limit // _STEPS)
    return [line[at : at + step] for at in range(0, len(line), step)]
