"""One completion request from arrival to answer: superseding, caching, debouncing, cancelling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference.api import EngineState, EngineStatus, Generation, GenerationResult, TextEngine
from inference.errors import DraftlineError
from lsp_server.completion.debounce import Debounce
from lsp_server.completion.filters.suffix_overlap import second_closing
from lsp_server.completion.options import CompletionOptions, Selected
from lsp_server.completion.pipeline import Suggestion, finish, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.ranges import ItemRange
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.completion.suggestions import Shown, SuggestionCache
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Point, Snapshot

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The outcome of a request.

    Attributes:
        suggestion: None if there is none, and then ``reason`` says why.
        superseded: answer ``null`` and not ``[]``: another answer is, or will be, the right one.
        cached: no model was asked.
        result: what the engine did for it, None if it was not asked or its answer did not matter any more.
        row: the cursor's line number, within the document.
        line: that line without its line end.
    """

    suggestion: Suggestion | None
    reason: str = ""
    message: str = ""
    superseded: bool = False
    cached: bool = False
    result: GenerationResult | None = None
    row: int = 0
    line: str = ""

    @property
    def source(self) -> str:
        """Who made the answer: "cache", "model" or "none"."""
        if self.cached:
            return "cache"
        return "none" if self.result is None else "model"


class _Ticket:
    """A request in flight; ``superseded`` is set when a newer one of its document arrives."""

    def __init__(self) -> None:
        self.superseded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def supersede(self) -> None:
        if not self.superseded.done():
            self.superseded.set_result(None)


class _Superseded(Exception):
    pass


class CompletionService:
    """Answers requests on open documents. Lives on the event loop."""

    def __init__(
        self,
        store: DocumentStore,
        engine: Callable[[], TextEngine | None],
        status: Callable[[], EngineStatus],
    ) -> None:
        """``engine`` gives the present engine; ``status`` what is known while there is none."""
        self._store = store
        self._engine = engine
        self._status = status
        self._tickets: dict[str, _Ticket] = {}
        self._builder: tuple[TextEngine, PromptBuilder] | None = None
        self.suggestions = SuggestionCache()
        self.debounce = Debounce()

    async def complete(
        self,
        uri: str,
        position: Point,
        options: CompletionOptions,
        *,
        debounce_ms: float = 0,
        selected: tuple[Point, Point, str] | None = None,
        allowed: Callable[[Snapshot], Reason | None] = lambda snapshot: None,
    ) -> Answer:
        """The suggestion at ``position`` (in the client's units).

        Everything up to the first ``await`` happens on arrival, so the text is the one the request
        was made for. Cancelling the task stops the decoding.

        Args:
            selected: range and text of the selected popup entry, if any.
            allowed: a reason not to answer for this text, e.g. its language is switched off.

        Raises:
            Withheld: the document is not open or must not be read.
        """
        self.supersede(uri)
        snapshot = self._store.get(uri).snapshot()
        refusal = allowed(snapshot)
        if refusal is not None:
            return Answer(None, refusal)
        cursor = snapshot.locate(position, self._store.encoding)
        extend = self._selected(snapshot, cursor, selected)
        if extend is None and (cached := self._from_cache(snapshot, cursor)) is not None:
            return cached
        ticket = _Ticket()
        self._tickets[uri] = ticket
        try:
            await self._unless_superseded(
                ticket, asyncio.ensure_future(self.debounce.wait(uri, debounce_ms)), cancel=True
            )
            return await self._generate(ticket, snapshot, cursor, options, extend)
        except _Superseded:
            return Answer(None, Reason.SUPERSEDED, superseded=True)
        except NoSuggestion as none:
            return Answer(None, none.reason, none.message)
        except DraftlineError as error:
            return Answer(None, error.code, str(error))
        finally:
            if self._tickets.get(uri) is ticket:
                del self._tickets[uri]

    def supersede(self, uri: str) -> None:
        """Answer the request of this document that is in flight, if any, with ``null`` now."""
        ticket = self._tickets.pop(uri, None)
        if ticket is not None:
            ticket.supersede()

    def closed(self, uri: str) -> None:
        """A document was closed: stop its request and forget its suggestions."""
        self.supersede(uri)
        self.suggestions.forget(uri)
        self.debounce.closed(uri)
        engine = self._engine()
        if engine is not None:
            engine.close_document(uri)

    def shutdown(self) -> None:
        """Answer everything in flight."""
        for uri in list(self._tickets):
            self.supersede(uri)

    async def _generate(
        self,
        ticket: _Ticket,
        snapshot: Snapshot,
        cursor: Point,
        options: CompletionOptions,
        selected: Selected | None,
    ) -> Answer:
        engine = self._ready_engine()
        prepared = prepare(snapshot, cursor, self._builder_for(engine), options, selected)
        generation = engine.submit(prepared.request)
        result = await self._result(ticket, generation)
        try:
            suggestion = finish(prepared, result)
        except NoSuggestion as none:
            # ``[]`` for an older text would hide what the client shows for the present one.
            superseded = none.reason == Reason.SUPERSEDED or self._changed(snapshot)
            return Answer(None, none.reason, none.message, superseded, result=result)
        if selected is None:
            self.suggestions.add(_shown(snapshot, cursor, suggestion))
        if self._changed(snapshot):
            # The client would show it where the cursor is now. It is kept for typing along.
            return Answer(None, Reason.STALE, superseded=True, result=result)
        return Answer(suggestion, result=result, row=cursor.line, line=snapshot.line(cursor.line))

    def _changed(self, snapshot: Snapshot) -> bool:
        return self._store.version(snapshot.uri) != snapshot.version

    async def _result(self, ticket: _Ticket, generation: Generation) -> GenerationResult:
        future = asyncio.wrap_future(generation.future)
        try:
            await self._unless_superseded(ticket, future, cancel=False)
        except (_Superseded, asyncio.CancelledError):
            generation.cancel()
            # Nobody awaits it any more; without this a failure would be logged as never retrieved.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        return future.result()

    @staticmethod
    async def _unless_superseded(ticket: _Ticket, work: asyncio.Future[Any], *, cancel: bool) -> None:
        """Wait for ``work``; ``cancel`` it if the wait ends otherwise.

        The engine's future must not be cancelled: its worker would fail to set the result.
        """
        try:
            waiting: set[asyncio.Future[Any]] = {work, ticket.superseded}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if cancel and not work.done():
                work.cancel()
        if ticket.superseded.done():
            raise _Superseded

    def _ready_engine(self) -> TextEngine:
        engine = self._engine()
        status = self._status() if engine is None else engine.status
        if engine is not None and status.state is EngineState.READY:
            return engine
        if status.state is EngineState.FAILED:
            raise NoSuggestion(Reason.FAILED, status.message)
        if status.state is EngineState.STOPPED:
            raise NoSuggestion(Reason.STOPPED)
        raise NoSuggestion(Reason.LOADING, status.message)

    def _builder_for(self, engine: TextEngine) -> PromptBuilder:
        if self._builder is None or self._builder[0] is not engine:
            self._builder = (engine, PromptBuilder(engine.tokenizer, engine.context))
        return self._builder[1]

    def _from_cache(self, snapshot: Snapshot, cursor: Point) -> Answer | None:
        found = self.suggestions.match(snapshot, cursor)
        if found is None or not found[1].strip():
            return None
        shown, text = found
        range = ItemRange(cursor.column, cursor.column + shown.covered)
        line = snapshot.line(cursor.line)
        return Answer(Suggestion(text, range), cached=True, row=cursor.line, line=line)

    def _selected(
        self, snapshot: Snapshot, cursor: Point, selected: tuple[Point, Point, str] | None
    ) -> Selected | None:
        """The popup entry, if its range is on the cursor's line and contains the cursor."""
        if selected is None:
            return None
        start = snapshot.locate(selected[0], self._store.encoding)
        end = snapshot.locate(selected[1], self._store.encoding)
        on_line = start.line == end.line == cursor.line
        if not on_line or not start.column <= cursor.column <= end.column or "\n" in selected[2]:
            return None
        return Selected(selected[2], start.column, end.column)


def _shown(snapshot: Snapshot, cursor: Point, suggestion: Suggestion) -> Shown:
    """A suggestion made for ``cursor``, to answer from while the user types along it."""
    covered = suggestion.range.end - cursor.column
    closing = snapshot.line(cursor.line)[cursor.column :].strip()
    first = second_closing(suggestion.text, closing) if covered else None
    return Shown(snapshot, cursor, suggestion.text, covered, first or 0)
