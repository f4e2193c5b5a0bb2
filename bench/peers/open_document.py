"""The document that an editor shows."""

from __future__ import annotations


class OpenDocument:
    """Lines without their ends (``\\n``), edited in place."""

    def __init__(self, text: str = "") -> None:
        self.lines = text.split("\n")

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range (line, column in characters)."""
        head, tail = self.lines[start[0]][: start[1]], self.lines[end[0]][end[1] :]
        self.lines[start[0] : end[0] + 1] = (head + text + tail).split("\n")
