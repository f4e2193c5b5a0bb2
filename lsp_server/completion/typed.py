"""What was typed between two states of a document, if nothing else happened to it."""

from __future__ import annotations

from dataclasses import dataclass

from inference.stops import CLOSERS
from lsp_server.completion.filters.suffix_overlap import second_closing
from lsp_server.documents.left_open import left_open
from lsp_server.documents.line_index import to_lf
from lsp_server.documents.text import Point, Snapshot

_QUOTES = ('"', "'", "`")


@dataclass(frozen=True)
class Typed:
    """Text that came to be before the cursor, and brackets and quotes that the editor closed behind it."""

    text: str
    closed: str = ""

    @property
    def moved(self) -> bool:
        """``closed`` is a line end with blanks: the bracket that stood behind the cursor got its own line."""
        return bool(self.closed) and not self.closed.strip()

    def rest_of(self, suggestion: str, *, replaces_rest: bool = False) -> str | None:
        """What is left of a suggestion for the earlier state; None if something else was typed.

        A bracket that the editor has closed is not closed a second time, unless the client replaces it.
        """
        if not suggestion.startswith(self.text):
            return None
        rest = suggestion[len(self.text) :]
        on_line = "\n" not in self.closed
        if not self.closed or (replaces_rest and on_line):
            return rest
        cut = None if self.moved else second_closing(rest, self.closed.strip())
        if cut is not None:
            rest = rest[:cut]
        return rest if on_line else rest.rstrip()


def typed_since(old: Snapshot, start: Point, new: Snapshot, cursor: Point) -> Typed | None:
    """What was typed at ``start`` of ``old`` so that the cursor stands at ``cursor`` of ``new``.

    None if the documents differ in another way. Snapshots share the strings of unchanged lines, so that
    this compares mostly pointers. Columns are in characters.
    """
    down = cursor.line - start.line
    below = len(new.lines) - len(old.lines) - down  # line ends that the editor put behind the cursor
    if down < 0 or not 0 <= below <= 1 or (down == 0 and cursor.column < start.column):
        return None
    old_line = to_lf(old.lines[start.line])
    first = to_lf(new.lines[start.line])
    current = to_lf(new.lines[cursor.line])
    if first[: start.column] != old_line[: start.column]:
        return None
    rest = old_line[start.column :]
    after = current[cursor.column :] + new.lf(cursor.line + 1, cursor.line + 1 + below)
    if not after.endswith(rest):
        return None
    if down == 0:
        text = current[start.column : cursor.column]
    else:
        text = first[start.column :] + new.lf(start.line + 1, cursor.line) + current[: cursor.column]
    closed = after[: len(after) - len(rest)]
    if closed and not _closed_by_editor(text, closed) and not _moved_by_editor(text, closed, rest):
        return None
    if new is not old and (
        new.language_id != old.language_id
        or new.lines[: start.line] != old.lines[: start.line]
        or new.lines[cursor.line + below + 1 :] != old.lines[start.line + 1 :]
    ):
        return None
    return Typed(text, closed)


def _closed_by_editor(typed: str, closed: str) -> bool:
    """Whether ``closed`` closes what ``typed`` left open; an editor may close some kinds only."""
    expected = reversed(left_open(typed, _QUOTES))
    found = "".join(closed.split())
    return bool(found) and all(character in expected for character in found)


def _moved_by_editor(typed: str, closed: str, rest: str) -> bool:
    """Whether a new line between two brackets has put the second one on a line of its own."""
    new_line = typed.rstrip(" \t").endswith("\n") and closed.startswith("\n") and not closed.strip()
    return new_line and rest.lstrip()[:1] in CLOSERS
