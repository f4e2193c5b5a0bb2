"""Putting a place before the engine."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from inference.api import EngineState, EngineStatus, Generation, TextEngine
from lsp_server.completion.pipeline import Prepared, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.completion.running import Place, Running
from lsp_server.context.gather import ContextGatherer
from lsp_server.context.related import NOTHING
from lsp_server.documents.text import Point, Snapshot


class Asking:
    """Knows the present engine and how to write prompts for it."""

    def __init__(
        self,
        engine: Callable[[], TextEngine | None],
        status: Callable[[], EngineStatus],
        on_end: Callable[[Running], None],
        gatherer: ContextGatherer | None = None,
    ) -> None:
        """``status`` is what is known while there is no engine; ``on_end`` hears of every end; ``gatherer``
        finds what a prompt shows beyond the window."""
        self.engine = engine
        self._status = status
        self._on_end = on_end
        self._gatherer = gatherer
        self._builder: tuple[TextEngine, PromptBuilder] | None = None
        # The text that a prompt is made of, where that is more than the document (cells of a notebook), and
        # the cursor in it; and a version of what it has beside the document.
        self.view: Callable[[Snapshot, Point], tuple[Snapshot, Point]] = lambda snapshot, cursor: (
            snapshot,
            cursor,
        )
        self.view_version: Callable[[str], Hashable] = lambda uri: None

    def context_version(self, uri: str) -> Hashable:
        """Of what a document's last prompt was made from beside the document, as that is now."""
        files = () if self._gatherer is None else self._gatherer.files_of(uri)
        return files, self.view_version(uri)

    def closed(self, uri: str) -> None:
        """Forget what is kept of a document."""
        if self._builder is not None:
            self._builder[1].forget(uri)

    def prepare(self, place: Place) -> Prepared:
        """The request for a place.

        Raises:
            NoSuggestion: the engine is not ready, or there is nothing to ask.
        """
        engine = self._ready()
        if self._builder is None or self._builder[0] is not engine:
            self._builder = (engine, PromptBuilder(engine.tokenizer, engine.context))
        view, within = self.view(place.snapshot, place.cursor)
        found = NOTHING
        if self._gatherer is not None:
            found = self._gatherer.gather(view, within, place.options, place.cursor.line)
        context = found.files, found.prefix_lines
        prepared = prepare(view, within, self._builder[1], place.options, place.selected, *context)
        # Gathering may have found something else than for the prompt before.
        return replace(prepared, context=self.context_version(place.snapshot.uri))

    def launch(self, place: Place, prepared: Prepared, began: float, *, prefetch: bool = False) -> Running:
        """Submit a request that was prepared for the present engine.

        Raises:
            NoSuggestion, DraftlineError
        """
        engine = self._ready()
        generation = engine.submit(replace(prepared.request, background=prefetch))
        return Running(engine, place, prepared, generation, began, self._on_end, prefetch=prefetch)

    def read(self, place: Place) -> Generation:
        """Have the engine read what a request for ``place`` would show it. It says a token, nobody wants it.

        Raises:
            NoSuggestion, DraftlineError
        """
        request = self.prepare(place).request
        return self._ready().submit(replace(request, max_new_tokens=1, background=True))

    def _ready(self) -> TextEngine:
        engine = self.engine()
        status = self._status() if engine is None else engine.status
        if engine is not None and status.state is EngineState.READY:
            return engine
        if status.state is EngineState.FAILED:
            raise NoSuggestion(Reason.FAILED, status.message)
        if status.state is EngineState.STOPPED:
            raise NoSuggestion(Reason.STOPPED)
        raise NoSuggestion(Reason.LOADING, status.message)
