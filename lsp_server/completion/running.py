"""A generation that is under way, which later requests may join while the user types along it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inference.api import Chunk, FinishReason, Generation, GenerationResult, TextEngine
from lsp_server.completion.options import CompletionOptions, Selected
from lsp_server.completion.partial import complete_lines, suggestion_in
from lsp_server.completion.pipeline import Prepared, Suggestion, finish
from lsp_server.completion.reasons import NoSuggestion
from lsp_server.completion.suggestions import Shown
from lsp_server.completion.typed import Typed, typed_since
from lsp_server.documents.text import Point, Snapshot

# Clients cancel a request before they send the change and the request that take its place; Neovim waits
# 200 ms in between.
GRACE_SECONDS = 0.3


@dataclass(frozen=True, eq=False)
class Place:
    """Where and how a suggestion is wanted; the cursor's column is in characters."""

    snapshot: Snapshot
    cursor: Point
    options: CompletionOptions
    selected: Selected | None = None


class Running:
    """What the engine writes for a place, seen from the event loop.

    Attributes:
        began: time (of the loop) at which somebody began to wait for it.
        prefetch: started before anybody asked.
        text: what has been written and will not be taken back, before the filters.
        result, suggestion: once it has ended; ``suggestion`` is None if there is none, and ``reason`` and
            ``message`` say why.
        error: it failed.
        entry: what the suggestions remember of it.
    """

    def __init__(
        self,
        engine: TextEngine,
        place: Place,
        prepared: Prepared,
        generation: Generation,
        began: float,
        on_end: Callable[[Running], None],
        *,
        prefetch: bool = False,
    ) -> None:
        self.engine = engine
        self.place = place
        self.prepared = prepared
        self.began = began
        self.prefetch = prefetch
        self.text = ""
        self.result: GenerationResult | None = None
        self.suggestion: Suggestion | None = None
        self.reason: str = ""
        self.message = ""
        self.error: BaseException | None = None
        self.entry: Shown | None = None
        self._generation = generation
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] = self._loop.create_future()
        self._followers = 0
        self._grace: asyncio.TimerHandle | None = None
        self._cancelled = False
        self._seen_lines = -1
        self._partial: Suggestion | None = None
        generation.listen(lambda chunk: self._call(self._said, chunk))
        generation.future.add_done_callback(lambda _: self._call(self._ended))

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to come."""
        return self.result is not None or self.error is not None

    @property
    def joinable(self) -> bool:
        """Whether it may still say something that is wanted."""
        return not self._cancelled and not self.ended

    @property
    def followed(self) -> bool:
        """Whether a request waits for it."""
        return self._followers > 0

    @property
    def cancelled(self) -> bool:
        """Whether nobody wanted it any more before it had ended."""
        return self._cancelled

    def typed(self, place: Place) -> Typed | None:
        """What was typed since it was asked for, None if ``place`` is not on its way."""
        mine = self.place
        if mine.snapshot.uri != place.snapshot.uri:
            return None  # the same text, but its prompt names another file
        if mine.selected is not None or place.selected is not None or mine.options != place.options:
            return None
        return typed_since(mine.snapshot, mine.cursor, place.snapshot, place.cursor)

    def agrees(self, typed: Typed) -> bool:
        """Whether ``typed`` does not contradict what was said so far; it may be ahead of that."""
        shown = suggestion_in(self.prepared, self.text)
        said = "" if shown is None else shown.text
        # What ends in white space there may end otherwise later, see `complete_lines`.
        return said.startswith(typed.text) or typed.text.startswith(said.rstrip())

    def leads_to(self, snapshot: Snapshot, cursors: tuple[Point, ...]) -> bool:
        """Whether one of ``cursors`` is on its way."""
        for cursor in cursors:
            typed = self.typed(Place(snapshot, cursor, self.place.options))
            if typed is not None and self.agrees(typed):
                return True
        return False

    def partial(self) -> Suggestion | None:
        """The whole lines that are certain, None if there are none yet."""
        lines = self.text.count("\n")
        if lines != self._seen_lines:
            self._seen_lines = lines
            self._partial = complete_lines(self.prepared, self.text)
        return self._partial

    def news(self) -> asyncio.Future[None]:
        """Done when there is more text, or the end."""
        return self._news

    @contextlib.contextmanager
    def follow(self) -> Iterator[None]:
        """Wait for it; if the waiting request is cancelled and nobody takes over, it ends soon."""
        self.keep()
        self._followers += 1
        try:
            yield
        except asyncio.CancelledError:
            if self._followers == 1:  # else somebody has taken over already
                self._grace = self._loop.call_later(GRACE_SECONDS, self.cancel)
            raise
        finally:
            self._followers -= 1

    def keep(self) -> None:
        """Somebody has a use for it again."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None

    def cancel(self) -> None:
        """Stop the decoding at its next step."""
        self.keep()
        if self.joinable:
            self._cancelled = True
            self._generation.cancel()

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        # The loop may be gone while the engine's thread still has something to say.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _said(self, chunk: Chunk) -> None:
        if not self.ended:
            self.text += chunk.text
            self._tell()

    def _ended(self) -> None:
        self.keep()
        try:
            result = self._generation.future.result()
        except Exception as error:
            self.error = error
        else:
            self.result = result
            self._judge(result)
        try:
            self._on_end(self)
        finally:  # whoever waits must not wait for ever
            self._tell()

    def _judge(self, result: GenerationResult) -> None:
        try:
            self.suggestion = finish(self.prepared, result)
        except NoSuggestion as none:
            self.reason, self.message = none.reason, none.message
        except Exception as error:  # a filter's fault; the request that waits reports it
            self.error = error

    def _tell(self) -> None:
        news, self._news = self._news, self._loop.create_future()
        news.set_result(None)


def was_stopped(result: GenerationResult) -> bool:
    """Whether an answer ended because nobody wanted it any more."""
    return result.finish_reason in (FinishReason.CANCELLED, FinishReason.SUPERSEDED)
