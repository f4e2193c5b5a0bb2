"""What is to be changed: whole lines of one version of a document."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.reasons import NoEdit, NoEditError


@dataclass(frozen=True)
class Selection:
    """Whole lines around what the user selected.

    Attributes:
        first: first line.
        stop: line after the last one.
        head: the first line before what was selected; an edit must leave it.
        tail: the last line behind what was selected; an edit must leave it.
        takes_end: the line end of the last line was selected too.
    """

    snapshot: Snapshot
    first: int
    stop: int
    head: str
    tail: str
    takes_end: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot, start: Point, end: Point) -> Selection:
        """The lines of a range (columns in characters, ends in any order).

        A range that ends at the very start of a line does not contain that line. Selections without a
        character that is no blank are none. Blank lines at the end are left out.

        Raises:
            NoEditError: ``empty-selection``.
        """
        if (end.line, end.column) < (start.line, start.column):
            start, end = end, start
        stop, column = end.line + 1, end.column
        takes_end = end.column == 0 and end.line > start.line
        if takes_end:
            stop, column = end.line, len(snapshot.line(end.line - 1))
        first_line, last_line = snapshot.line(start.line), snapshot.line(stop - 1)
        inside = [snapshot.line(number) for number in range(start.line, stop)]
        inside[-1] = inside[-1][:column]
        inside[0] = inside[0][start.column :]
        if not any(line.strip() for line in inside):
            raise NoEditError(NoEdit.EMPTY_SELECTION)
        while not snapshot.line(stop - 1).strip():
            # What sets it apart from the code below: an answer ends with code, and would delete it.
            stop, last_line, column, takes_end = stop - 1, "", 0, True
        return cls(snapshot, start.line, stop, first_line[: start.column], last_line[column:], takes_end)

    @property
    def lines(self) -> tuple[str, ...]:
        """Without line ends."""
        return tuple(self.snapshot.line(number) for number in range(self.first, self.stop))

    @property
    def start(self) -> int:
        """The first line that is not blank: what it stands in is what the selection stands in."""
        return next(number for number, line in enumerate(self.lines, self.first) if line.strip())

    def keeps_outside(self, lines: list[str] | tuple[str, ...]) -> bool:
        """Whether ``lines`` in place of the selected ones leave the text around the selection alone."""
        if not lines:
            return not self.head and not self.tail
        fits = len(lines) > 1 or len(lines[0]) >= len(self.head) + len(self.tail)
        return fits and lines[0].startswith(self.head) and lines[-1].endswith(self.tail)
