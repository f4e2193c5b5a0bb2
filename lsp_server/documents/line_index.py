"""Line splitting as LSP defines it.

Only ``\\n``, ``\\r\\n`` and ``\\r`` end a line (LSP 3.18, "Text Documents"). ``str.splitlines`` also
breaks at form feeds, U+0085, U+2028 and others, which shifts every position below such a character.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

Eol = Literal["\n", "\r\n", "\r"]

# Of the line ends only: a pattern that begins with the line would try every character of a long last line.
_EOL = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """Lines of ``text`` with their line ends.

    There is always a last line without an end (possibly ""), so the list is never empty and its
    length is the number of line ends plus one; joining it gives ``text`` back.
    """
    if "\r" not in text:
        pieces = text.split("\n")
        last = pieces.pop()
        lines = [piece + "\n" for piece in pieces]
        lines.append(last)
        return lines
    lines = []
    end = 0
    for match in _EOL.finditer(text):
        lines.append(text[end : match.end()])
        end = match.end()
    lines.append(text[end:])
    return lines


def strip_eol(line: str) -> str:
    """The line without its line end."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line[:-1] if line.endswith("\r") else line


def to_lf(line: str) -> str:
    """The line with its line end, if it has one, replaced by ``\\n``."""
    if line.endswith("\r\n"):
        return line[:-2] + "\n"
    return line[:-1] + "\n" if line.endswith("\r") else line


def dominant_eol(lines: Sequence[str], sample: int = 200) -> Eol:
    """The commonest line end among the first ``sample`` lines; ``\\n`` where there is none."""
    counts: Counter[Eol] = Counter()
    for line in lines[:sample]:
        if line.endswith("\r\n"):
            counts["\r\n"] += 1
        elif line.endswith("\n"):
            counts["\n"] += 1
        elif line.endswith("\r"):
            counts["\r"] += 1
    return counts.most_common(1)[0][0] if counts else "\n"
