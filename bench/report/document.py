"""A Markdown file whose tables are made, while the words around them are somebody's."""

from __future__ import annotations

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"


class NoMarkers(Exception):
    """A text has not exactly one pair of markers, in this order."""


def whole(tables: str) -> str:
    """A new file."""
    return f"# Measured with draftline bench\n\n{BEGIN}\n{tables}{END}\n"


def replaced(text: str, tables: str) -> str:
    """The text with other tables between its markers.

    Raises:
        NoMarkers
    """
    start, end = _between(text)
    return f"{text[:start]}\n{tables}{text[end:]}"


def inside(text: str) -> str:
    """The tables between a text's markers.

    Raises:
        NoMarkers
    """
    start, end = _between(text)
    return text[start:end].removeprefix("\n")


def _between(text: str) -> tuple[int, int]:
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise NoMarkers
    return text.index(BEGIN) + len(BEGIN), text.index(END)
