"""Brackets and quotes that a text leaves open."""

from __future__ import annotations

from inference.stops import OPENERS


def left_open(text: str, quotes: tuple[str, ...]) -> list[str]:
    """What would close the brackets and quotes that are open at the end of ``text``, the innermost last.

    Args:
        quotes: those that count, a longer one before the one that it is made of. Within them nothing is
            opened, and a backslash takes the next character with it.
    """
    closers: list[str] = []
    at = 0
    while at < len(text):
        quoted = bool(closers) and closers[-1] in quotes
        if quoted and text[at] == "\\":
            at += 2
        elif closers and text.startswith(closers[-1], at):
            at += len(closers.pop())
        else:
            quote = "" if quoted else next((each for each in quotes if text.startswith(each, at)), "")
            opened = quote or ("" if quoted else OPENERS.get(text[at], ""))
            if opened:
                closers.append(opened)
            at += max(len(quote), 1)
    return closers
