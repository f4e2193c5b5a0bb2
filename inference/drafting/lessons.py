"""Texts that wait to be read into the shared index, piece by piece while nobody asks for anything."""

from __future__ import annotations

from dataclasses import dataclass

MAX_CHARS = 1 << 18  # of one text: about a sixth of the index
MAX_TEXTS = 64  # that wait; the oldest goes when there are more
PIECE_CHARS = 2048  # read at once; a request that comes meanwhile waits for a millisecond or two


@dataclass(frozen=True)
class Piece:
    """Part of a document's text; ``first`` where it replaces what was known of the document."""

    document: str
    text: str
    first: bool


class Lessons:
    """Not thread-safe: the engine's lock guards it."""

    def __init__(self) -> None:
        # What is left of each text, and whether it has been begun.
        self._waiting: dict[str, tuple[str, bool]] = {}
        self._known: dict[str, int] = {}  # hash of the text that was put last

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, document: str, text: str) -> None:
        """Read a text in place of what is known or waiting of the document; of a long one the beginning."""
        text = text[:MAX_CHARS]
        if self._known.get(document) == hash(text):
            return
        self.drop(document)
        self._known[document] = hash(text)
        self._waiting[document] = text, False
        while len(self._waiting) > MAX_TEXTS:
            self.drop(next(iter(self._waiting)))

    def drop(self, document: str) -> None:
        """Do not read a document any more; what was read of it counts as forgotten."""
        self._waiting.pop(document, None)
        self._known.pop(document, None)

    def take(self) -> Piece:
        """The next piece, cut behind a line where there is one. Something must be waiting."""
        document, (text, begun) = next(iter(self._waiting.items()))
        end = len(text)
        if end > PIECE_CHARS:
            end = text.rfind("\n", 0, PIECE_CHARS) + 1 or PIECE_CHARS
        if end == len(text):
            del self._waiting[document]
        else:
            self._waiting[document] = text[end:], True
        return Piece(document, text[:end], not begun)
