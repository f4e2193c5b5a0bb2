"""What a change of a document says about the user's keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.documents.positions import PositionEncoding, join_surrogates
from lsp_server.documents.text import Change, Point, Snapshot

# Keys that editors answer with a second character behind the cursor.
PAIRS = ("()", "[]", "{}", '""', "''", "``")
_CLOSING = ")]}\"'`"


@dataclass(frozen=True)
class Edit:
    """One piece of text that came to be in a document.

    Attributes:
        start, end: of ``inserted`` in the changed document, columns in characters.
        inserted: with ``\\n`` line ends.
        removed: other text was there before.
    """

    start: Point
    end: Point
    inserted: str
    removed: bool

    @property
    def cursors(self) -> tuple[Point, ...]:
        """Where the cursor may be now: behind the text, or before what the editor closed by itself, or on the
        first of two new lines between brackets."""
        closed = len(self.inserted) - len(self.inserted.rstrip(_CLOSING))
        if not closed:
            lines = self.inserted.split("\n")
            if len(lines) == 3 and not self.inserted.strip():
                return (self.end, Point(self.end.line - 1, len(lines[1])))
            return (self.end,)
        return (self.end, Point(self.end.line, self.end.column - closed))


def is_key(changes: Sequence[Change]) -> bool:
    """Whether one key that writes something may have done it."""
    if len(changes) != 1 or changes[0].start is None or changes[0].start != changes[0].end:
        return False
    text = changes[0].text
    indented = text.startswith(("\n", "\r")) and not text.strip()
    return len(text) == 1 or text in PAIRS or indented


def edit_of(changes: Sequence[Change], snapshot: Snapshot, encoding: PositionEncoding) -> Edit | None:
    """The edit behind the changes of one ``didChange``, None if they are not a single one with a range.

    Args:
        snapshot: the document after it.
    """
    if len(changes) != 1 or changes[0].start is None or changes[0].end is None:
        return None
    change = changes[0]
    first, last = change.start, change.end
    assert first is not None and last is not None
    inserted = join_surrogates(change.text).replace("\r\n", "\n").replace("\r", "\n")
    start = snapshot.locate(min(first, last, key=lambda point: (point.line, point.column)), encoding)
    lines = inserted.split("\n")
    column = len(lines[-1]) + (start.column if len(lines) == 1 else 0)
    return Edit(start, Point(start.line + len(lines) - 1, column), inserted, first != last)
