"""The cursor rests where it was moved to: what a request there would show the model is read before a key.

A new place costs what its prompt is long, about a second for a thousand tokens, and the first key there would
wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from inference.api import Generation, GenerationResult
from inference.errors import DraftlineError
from lsp_server.completion.asking import Asking
from lsp_server.completion.reasons import NoSuggestion
from lsp_server.completion.running import Place, was_stopped


class Resting:
    """Reads for one place at a time, as long as nobody asks for anything."""

    def __init__(self, asking: Asking, on_read: Callable[[GenerationResult], None]) -> None:
        """``on_read`` hears what each reading cost, on the event loop."""
        self._asking = asking
        self._on_read = on_read
        self._place: Place | None = None
        self._generation: Generation | None = None

    def at(self, place: Place) -> None:
        """Read for ``place`` instead of the one before. What is wrong there is said when a key asks."""
        if self._place is not None and _same(self._place, place):
            return
        self.leave()
        try:
            generation = self._asking.read(place)
        except (NoSuggestion, DraftlineError):
            return
        self._place, self._generation = place, generation
        loop = asyncio.get_running_loop()

        def ended(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._ended, generation)

        generation.future.add_done_callback(ended)

    def _ended(self, generation: Generation) -> None:
        failed = generation.future.cancelled() or generation.future.exception() is not None
        result = None if failed else generation.future.result()
        if result is not None:
            self._on_read(result)
        if generation is self._generation and (result is None or was_stopped(result)):
            self._generation = self._place = None  # not read to its end: worth another try

    def leave(self) -> None:
        """Stop reading; what was read is kept."""
        if self._generation is not None:
            self._generation.cancel()
        self._generation = self._place = None

    def forget(self, uri: str) -> None:
        """A document was closed."""
        if self._place is not None and self._place.snapshot.uri == uri:
            self.leave()


def _same(one: Place, other: Place) -> bool:
    return (one.snapshot.uri, one.snapshot.version, one.cursor, one.options) == (
        other.snapshot.uri,
        other.snapshot.version,
        other.cursor,
        other.options,
    )
