"""Type-through: answer from the last suggestions while the user types along them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from lsp_server.documents.line_index import to_lf
from lsp_server.documents.text import Point, Snapshot


@dataclass(frozen=True)
class Shown:
    """A suggestion's text with the document and the cursor (column in characters) it was made for.

    Attributes:
        covered: characters behind the cursor that the suggestion replaces.
        covered_from: index in ``text`` of the bracket or quote that stands for the first of them.
    """

    snapshot: Snapshot
    cursor: Point
    text: str
    covered: int = 0
    covered_from: int = 0


class SuggestionCache:
    """The last few suggestions of the last few documents.

    An entry answers a later position if the document differs from the entry's only by text typed at
    the entry's cursor that the suggestion begins with. Snapshots share the strings of unchanged lines,
    so that check compares mostly pointers, and an entry holds little memory of its own.
    """

    def __init__(self, documents: int = 16, per_document: int = 4) -> None:
        self._documents = documents
        self._per_document = per_document
        self._entries: OrderedDict[str, list[Shown]] = OrderedDict()

    def add(self, shown: Shown) -> None:
        """Remember a suggestion."""
        entries = self._entries.setdefault(shown.snapshot.uri, [])
        entries.insert(0, shown)
        del entries[self._per_document :]
        self._entries.move_to_end(shown.snapshot.uri)
        while len(self._entries) > self._documents:
            self._entries.popitem(last=False)

    def rest(self, snapshot: Snapshot, cursor: Point) -> str | None:
        """What is left of a remembered suggestion at ``cursor``, None if none applies.

        Never "": a suggestion typed to its end says nothing about what follows.
        """
        found = self.match(snapshot, cursor)
        return None if found is None else found[1]

    def match(self, snapshot: Snapshot, cursor: Point) -> tuple[Shown, str] | None:
        """The same, with the entry.

        What an entry replaces behind the cursor stays the same while the user types along, until it is a
        replaced bracket that is typed: then there are two of it, and nobody knows which one is to stay.
        """
        for shown in self._entries.get(snapshot.uri, ()):
            rest = _rest(shown, snapshot, cursor)
            if rest and not (shown.covered and len(shown.text) - len(rest) > shown.covered_from):
                return shown, rest
        return None

    def forget(self, uri: str) -> None:
        """Drop the entries of a document."""
        self._entries.pop(uri, None)

    def clear(self) -> None:
        """Drop everything, e.g. when another model or other settings make new answers."""
        self._entries.clear()


def _rest(shown: Shown, new: Snapshot, cursor: Point) -> str | None:
    old, start = shown.snapshot, shown.cursor
    added = len(new.lines) - len(old.lines)
    if added != cursor.line - start.line or added < 0:
        return None
    old_line = to_lf(old.lines[start.line])
    new_line = to_lf(new.lines[cursor.line])
    if new_line[cursor.column :] != old_line[start.column :]:
        return None
    first = to_lf(new.lines[start.line])
    if first[: start.column] != old_line[: start.column]:
        return None
    if added == 0:
        typed = new_line[start.column : cursor.column] if cursor.column >= start.column else None
    else:
        typed = first[start.column :] + new.lf(start.line + 1, cursor.line) + new_line[: cursor.column]
    if typed is None or not shown.text.startswith(typed):
        return None
    if new is not old and (
        new.language_id != old.language_id
        or new.lines[: start.line] != old.lines[: start.line]
        or new.lines[cursor.line + 1 :] != old.lines[start.line + 1 :]
    ):
        return None
    return shown.text[len(typed) :]
