"""Which suggestions were taken: by the client's command, and by edits that insert what was shown.

Clients run the command of an item only after its whole text was accepted, and some never do; a word or
a line of it comes as a plain edit.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from lsp_server.completion.edits import PAIRS
from lsp_server.documents.text import Point

Amount = Literal["whole", "line", "word"]

_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)[ \t]*")
_MAX_ITEMS = 64


@dataclass(frozen=True)
class Accepted:
    """How much of a suggestion was taken, and how many characters that are."""

    amount: Amount
    characters: int


@dataclass(eq=False)
class _OnScreen:
    """What a client may be showing, and how much of it stands in the document already."""

    texts: tuple[str, ...]
    at: Point
    done: int = 0
    taken: bool = False


class Acceptance:
    """Follows what is shown in each document. Points have columns in characters."""

    def __init__(self) -> None:
        self._on_screen: dict[str, _OnScreen] = {}
        self._items: OrderedDict[str, tuple[_OnScreen | None, int]] = OrderedDict()

    def show(self, uri: str, at: Point, texts: tuple[str, ...]) -> None:
        """A client was given ``texts`` to insert at ``at``."""
        self._on_screen[uri] = _OnScreen(texts, at)

    def item(self, id: str, uri: str, characters: int) -> None:
        """The client was given a command that names ``id`` for what is shown now."""
        self._items[id] = (self._on_screen.get(uri), characters)
        while len(self._items) > _MAX_ITEMS:
            self._items.popitem(last=False)

    def accepted(self, id: str) -> Accepted | None:
        """The command was run; None if that is known already, or the item is not."""
        shown, characters = self._items.pop(id, (None, 0))
        if shown is None:
            return Accepted("whole", characters) if characters else None
        if shown.taken:
            return None
        shown.taken = True
        return Accepted("whole", characters)

    def follows(self, uri: str) -> bool:
        """Whether something of a document may be on screen."""
        return uri in self._on_screen

    def edited(self, uri: str, start: Point, inserted: str, removed: bool) -> Accepted | None:
        """What an edit took of the text on screen, None if it is something else or known already.

        Args:
            inserted: with ``\\n`` line ends.
            removed: the edit also replaced text.
        """
        shown = self._on_screen.get(uri)
        if shown is None:
            return None
        text = self._expected(shown, start, inserted)
        if text is None or (removed and text[shown.done :] != inserted):
            del self._on_screen[uri]
            return None
        key = inserted[0] if inserted in PAIRS and not text.startswith(inserted, shown.done) else inserted
        rest = text[shown.done :]
        shown.done += len(key)
        if len(key) < 2 or not key.strip():
            return None
        if key == rest:
            amount: Amount = "whole"
            del self._on_screen[uri]
        elif rest.split("\n", 1)[0].rstrip() == key.rstrip() or rest[: len(key) + 1].endswith("\n"):
            amount = "line"
        elif _WORD.fullmatch(key):
            amount = "word"
        else:
            return None  # keys that came in one message
        if shown.taken:
            return None
        shown.taken = amount == "whole"
        return Accepted(amount, len(key))

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._on_screen.pop(uri, None)

    @staticmethod
    def _expected(shown: _OnScreen, start: Point, inserted: str) -> str | None:
        """The text on screen that goes on at ``start`` with ``inserted``."""
        for text in shown.texts:
            done = text[: shown.done]
            down = done.count("\n")
            column = len(done) - done.rfind("\n") - 1 if down else shown.at.column + len(done)
            first = inserted[0] if inserted in PAIRS else inserted
            if (
                start == Point(shown.at.line + down, column)
                and inserted
                and text[shown.done :].startswith(first)
            ):
                return text
        return None
