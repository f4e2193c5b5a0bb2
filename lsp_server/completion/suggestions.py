"""Type-through: answer from the last suggestions while the user types along them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from lsp_server.completion.filters.suffix_overlap import second_closing
from lsp_server.completion.ranges import item_range
from lsp_server.completion.typed import Typed, typed_since
from lsp_server.documents.text import Point, Snapshot

Origin = Literal["cache", "prefetch"]


@dataclass(frozen=True, eq=False)
class Shown:
    """A suggestion's text with the document and the cursor (column in characters) it was made for.

    Attributes:
        origin: "prefetch" if it was made before anybody asked.
        context: a version of what else the prompt was made from.
    """

    snapshot: Snapshot
    cursor: Point
    text: str
    origin: Origin = "cache"
    context: Hashable = None

    def replaces(self) -> tuple[int, int]:
        """For clients that replace text: how many characters behind the cursor the suggestion replaces, and
        the index in ``text`` of the bracket or quote that stands for the first of them."""
        rest = self.snapshot.line(self.cursor.line)[self.cursor.column :]
        range = item_range(self.cursor.column, self.text, rest, replaces_rest=True)
        covered = range.end - self.cursor.column
        return covered, (second_closing(self.text, rest.strip()) or 0) if covered else len(self.text)

    def left(self, typed: Typed, *, replaces_rest: bool) -> str | None:
        """What is left of the text once ``typed`` is there; None if it does not apply any more.

        Where a bracket that is to be replaced was typed, or has moved, nobody knows which of the two is to
        stay.
        """
        rest = typed.rest_of(self.text, replaces_rest=replaces_rest)
        if rest is None or not rest.strip():
            return None
        if replaces_rest:
            covered, bracket = self.replaces()
            if len(typed.text) > bracket or (covered and typed.moved):
                return None
        return rest


class SuggestionCache:
    """The last few suggestions of the last few documents.

    An entry answers a later position if the document differs from the entry's only by text typed at
    the entry's cursor that the suggestion begins with (see `typed_since`), so everything around the cursor is
    part of the key. An entry of another ``context`` counts only while it is on screen: what the user reads
    does not change under his eyes unless it became wrong, and is replaced only by what extends it. Only the
    document that the user is in has something on screen.
    """

    def __init__(self, documents: int = 16, per_document: int = 8) -> None:
        self._documents = documents
        self._per_document = per_document
        self._entries: OrderedDict[str, list[Shown]] = OrderedDict()
        self._on_screen: Shown | None = None

    def add(self, shown: Shown) -> None:
        """Remember a suggestion."""
        uri = shown.snapshot.uri
        entries = self._entries.setdefault(uri, [])
        entries.insert(0, shown)
        for old in entries[self._per_document :]:
            if old is not self._on_screen:
                entries.remove(old)
        self._entries.move_to_end(uri)
        while len(self._entries) > self._documents:
            self.forget(next(iter(self._entries)))

    def replace(self, old: Shown, new: Shown) -> Shown:
        """Put a longer form in the place of ``old``; the one that is then remembered.

        A text that is on screen stays if ``new`` does not extend it. White space at its end does not count:
        it puts the bracket that stands behind it on a line of its own.
        """
        uri = old.snapshot.uri
        on_screen = self._on_screen is old
        if on_screen and not new.text.startswith(old.text.rstrip()):
            return old
        entries = self._entries.get(uri, [])
        if old in entries:
            entries[entries.index(old)] = new
        else:
            self.add(new)
        if on_screen:
            self._on_screen = new
        return new

    def show(self, shown: Shown) -> None:
        """An entry was given to the client."""
        self._on_screen = shown

    def edited(self, uri: str) -> None:
        """A document was edited: what the user read in another one is out of sight."""
        if self._on_screen is not None and self._on_screen.snapshot.uri != uri:
            self._on_screen = None

    def find(
        self, snapshot: Snapshot, cursor: Point, *, replaces_rest: bool = False, context: Hashable = None
    ) -> tuple[Shown, str] | None:
        """The entry that applies at ``cursor`` and what is left of its text; None if there is none.

        Never "": a suggestion typed to its end says nothing about what follows.
        """
        seen = self._on_screen
        found: list[tuple[Shown, str]] = []
        for shown in self._entries.get(snapshot.uri, ()):
            if shown.context != context and shown is not seen:
                continue
            typed = typed_since(shown.snapshot, shown.cursor, snapshot, cursor)
            rest = None if typed is None else shown.left(typed, replaces_rest=replaces_rest)
            if rest is not None:
                found.append((shown, rest))
        for shown, rest in found:
            if shown is seen:
                return max((other for other in found if other[1].startswith(rest)), key=lambda it: len(it[1]))
        return found[0] if found else None

    def rest(self, snapshot: Snapshot, cursor: Point) -> str | None:
        """What is left of a remembered suggestion at ``cursor``, None if none applies."""
        found = self.find(snapshot, cursor)
        return None if found is None else found[1]

    def forget(self, uri: str) -> None:
        """Drop the entries of a document."""
        self._entries.pop(uri, None)
        if self._on_screen is not None and self._on_screen.snapshot.uri == uri:
            self._on_screen = None

    def clear(self) -> None:
        """Drop everything, e.g. when another model or other settings make new answers."""
        self._entries.clear()
        self._on_screen = None
