"""What would be wanted after the suggestion on screen is accepted, asked for in advance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_server.completion.pipeline import Suggestion
from lsp_server.completion.running import Place, Running
from lsp_server.documents.line_index import split_lines
from lsp_server.documents.text import Point, Snapshot

# A typist's next key comes sooner than this; a prefetch that it would stop only costs.
PAUSE_SECONDS = 0.25
# After an acceptance the client's own request comes at once, if it comes.
AFTER_ACCEPTANCE_SECONDS = 0.05


class Prefetch:
    """At most one prefetch at a time, and one for each place: an idle editor costs nothing.

    Attributes:
        enabled: False switches it off everywhere.
        allowed: whether it is wanted in a document.
        running: the present one.
    """

    def __init__(self, start: Callable[[Place], Running | None]) -> None:
        """``start`` asks the engine, or returns None if this is not the time for it."""
        self.enabled = False
        self.allowed: Callable[[str], bool] = lambda uri: True
        self.running: Running | None = None
        self.pause_seconds = PAUSE_SECONDS
        self._start = start
        self._last: dict[str, Place] = {}
        self._timer: asyncio.TimerHandle | None = None

    def later(self, wanted: Callable[[], Place | None], seconds: float | None = None) -> None:
        """Start in a while, if nothing comes in between; ``wanted`` then says for which place."""
        self._unschedule()
        if self.enabled:
            delay = self.pause_seconds if seconds is None else seconds
            self._timer = asyncio.get_running_loop().call_later(delay, self._begin, wanted)

    def cancel(self) -> None:
        """Make way: stop the present one and what is to come."""
        self._unschedule()
        if self.running is not None:
            self.running.cancel()
            # It did not come to its end, so that place is worth asking for again.
            self._last.pop(self.running.place.snapshot.uri, None)
            self.running = None

    def take(self) -> Running | None:
        """Hand over the present one, to a request that wants what it writes."""
        running, self.running = self.running, None
        return running

    def ended(self, running: Running) -> None:
        """A generation has ended, perhaps this one."""
        if running is self.running:
            self.running = None

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._last.pop(uri, None)
        if self.running is not None and self.running.place.snapshot.uri == uri:
            self.cancel()

    def clear(self) -> None:
        """Other settings or another model: what was asked for is worth asking for again."""
        self.cancel()
        self._last.clear()

    def _begin(self, wanted: Callable[[], Place | None]) -> None:
        self._timer = None
        if not self.enabled or self.running is not None:
            return
        place = wanted()
        if place is None or not self.allowed(place.snapshot.uri) or self._known(place):
            return
        self.running = self._start(place)
        if self.running is not None:
            self._last[place.snapshot.uri] = place

    def _known(self, place: Place) -> bool:
        last = self._last.get(place.snapshot.uri)
        return (
            last is not None
            and last.cursor == place.cursor
            and last.options == place.options
            and last.snapshot.lines == place.snapshot.lines
        )

    def _unschedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def after_acceptance(place: Place, suggestion: Suggestion) -> Place:
    """The document and the cursor as they are once a client has inserted ``suggestion``."""
    old, row = place.snapshot, place.cursor.line
    line, covered = old.lines[row], suggestion.range
    inserted = suggestion.text.replace("\n", old.eol)
    pieces = split_lines(line[: covered.start] + inserted + line[covered.end :])
    if row + 1 < len(old.lines):
        pieces.pop()  # the line kept its end, and what follows it is the next line
    written = suggestion.text.split("\n")
    column = len(written[-1]) + (covered.start if len(written) == 1 else 0)
    lines = (*old.lines[:row], *pieces, *old.lines[row + 1 :])
    snapshot = Snapshot(old.uri, old.version, old.language_id, lines, old.eol)
    return Place(snapshot, Point(row + len(written) - 1, column), place.options)
