"""Putting a place before the engine."""

from __future__ import annotations

from collections.abc import Callable

from inference.api import EngineState, EngineStatus, TextEngine
from lsp_server.completion.pipeline import Prepared, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.completion.running import Place, Running


class Asking:
    """Knows the present engine and how to write prompts for it."""

    def __init__(
        self,
        engine: Callable[[], TextEngine | None],
        status: Callable[[], EngineStatus],
        on_end: Callable[[Running], None],
    ) -> None:
        """``status`` is what is known while there is no engine; ``on_end`` hears of every end."""
        self.engine = engine
        self._status = status
        self._on_end = on_end
        self._builder: tuple[TextEngine, PromptBuilder] | None = None

    def prepare(self, place: Place) -> Prepared:
        """The request for a place.

        Raises:
            NoSuggestion: the engine is not ready, or there is nothing to ask.
        """
        engine = self._ready()
        if self._builder is None or self._builder[0] is not engine:
            self._builder = (engine, PromptBuilder(engine.tokenizer, engine.context))
        return prepare(place.snapshot, place.cursor, self._builder[1], place.options, place.selected)

    def launch(self, place: Place, prepared: Prepared, began: float, *, prefetch: bool = False) -> Running:
        """Submit a request that was prepared for the present engine.

        Raises:
            NoSuggestion, DraftlineError
        """
        engine = self._ready()
        generation = engine.submit(prepared.request)
        return Running(engine, place, prepared, generation, began, self._on_end, prefetch=prefetch)

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
