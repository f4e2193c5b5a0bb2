"""Markdown tables that are also readable raw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEGEND = "↓ lower is better, ↑ higher is better, – not known or not measured."


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        note: what the figures are and are not, with units where the columns do not say them.
        columns: headings, with unit and direction.
        words: that many columns from the left hold words, the others figures.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1

    def markdown(self) -> str:
        """Heading, note and table."""
        lines = [_padded(self.columns, self.rows, self.words)]
        return "\n\n".join([f"### {self.title}", *([self.note] if self.note else []), *lines])


def _padded(columns: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    cells = [[_cell(text) for text in row] for row in (columns, *rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(columns))]
    rule = ["-" * width if column < words else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    lines = []
    for row in (cells[0], rule, *cells[1:]):
        padded = [
            text.ljust(width) if column < words else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(padded) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
