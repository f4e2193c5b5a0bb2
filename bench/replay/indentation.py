"""The blanks that an editor puts at the beginning of a new line."""

from __future__ import annotations

from collections import Counter

_OPENERS = ("{", "(", "[")


def leading_blanks(line: str) -> str:
    """The spaces and tabs that ``line`` begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def indentation_unit(text: str) -> str:
    """One level of indentation as this file has it: a tab or some spaces; four spaces if it has none."""
    steps: Counter[str] = Counter()
    last = ""
    for line in text.split("\n"):
        if line.strip():
            blanks = leading_blanks(line)
            # A wider step is a continuation that is lined up with something.
            if blanks.startswith(last) and (step := blanks[len(last) :]) in ("\t", "  ", "    ", " " * 8):
                steps[step] += 1
            last = blanks
    return max(steps, key=lambda step: steps[step], default="    ")


def indentation_after(line: str, language: str, unit: str) -> str:
    """What an editor puts on the line below ``line``: its indentation, one level more behind an opener.

    Args:
        line: up to the cursor.
        language: an LSP language identifier; a colon opens a block only in Python.
        unit: one level.
    """
    openers = (*_OPENERS, ":") if language == "python" else _OPENERS
    return leading_blanks(line) + (unit if line.rstrip().endswith(openers) else "")
