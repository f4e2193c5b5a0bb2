"""An edit from request to answer: refusals, prompt, streaming, cancelling, versions."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inference.api import (
    EngineState,
    EngineStatus,
    FinishReason,
    GenerationRequest,
    GenerationResult,
    StopRules,
    TextEngine,
)
from inference.errors import DraftlineError
from lsp_server.completion.reasons import Reason
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.context import Diagnostic, context_of
from lsp_server.inline_edit.edits import LineEdit, line_edits
from lsp_server.inline_edit.layout import Layout
from lsp_server.inline_edit.prompt import EditPrompt, answer_limit, edit_prompt
from lsp_server.inline_edit.reasons import NoEdit, NoEditError
from lsp_server.inline_edit.rewrite import Progress, Rewrite, Rewritten
from lsp_server.inline_edit.selection import Selection
from lsp_server.inline_edit.stream import chunks

_log = logging.getLogger(__name__)

TRUNCATED = frozenset({FinishReason.LENGTH, FinishReason.CONTEXT, FinishReason.DEADLINE})
# Characters for each token of the context above which a text's tokens are not even counted; only runs of
# blanks and of signs have longer tokens.
_MOST_CHARS = 64
_ENDED = {
    FinishReason.CANCELLED: NoEdit.CANCELLED,
    FinishReason.SUPERSEDED: NoEdit.CANCELLED,
}


@dataclass(frozen=True)
class EditRequest:
    """What a client asks for.

    Attributes:
        version: of the document the range is about; None trusts the present one.
        start, end: of the selection, in the client's units.
        path: of the file, None if the document is none.
    """

    uri: str
    start: Point
    end: Point
    instruction: str
    version: int | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    path: Path | None = None


@dataclass(frozen=True)
class EditOptions:
    """How to decode; the names are those of the settings."""

    temperature: float = 0.0
    seed: int = 0
    use_cache: bool = True


@dataclass(frozen=True)
class EditAnswer:
    """The outcome of a request.

    Attributes:
        reason: why there is no edit, "" if there is one.
        selection: what was to be changed; None if there was nothing to begin with.
        rewritten: the edit, None if there is none.
        result: what the engine did, None if it was not asked.
    """

    reason: str = ""
    message: str = ""
    selection: Selection | None = None
    rewritten: Rewritten | None = None
    result: GenerationResult | None = None

    @property
    def edits(self) -> tuple[LineEdit, ...]:
        """Edits of the document at the version of the selection; empty without an edit."""
        if self.rewritten is None or self.selection is None:
            return ()
        return line_edits(self.selection, self.rewritten.hunks)


@dataclass(frozen=True)
class PreparedEdit:
    """A request for the engine, and what follows its answer."""

    selection: Selection
    prompt: EditPrompt
    request: GenerationRequest
    rewrite: Rewrite


def prepare_edit(
    selection: Selection,
    instruction: str,
    engine: TextEngine,
    options: EditOptions,
    diagnostics: Sequence[Diagnostic] = (),
) -> PreparedEdit:
    """The request for an edit.

    Raises:
        NoEditError: ``no-instruction``, ``selection-too-long``.
    """
    if not instruction.strip():
        raise NoEditError(NoEdit.NO_INSTRUCTION)
    snapshot = selection.snapshot
    size = sum(map(len, selection.lines)) + len(instruction)
    if size > _MOST_CHARS * engine.context:
        raise NoEditError(
            NoEdit.TOO_LONG,
            f"The selection has {size} characters, the context holds {engine.context} tokens: select less.",
        )
    layout = Layout.of(selection.lines)
    shown = layout.shown(selection.lines)
    language = "" if snapshot.language_id == "plaintext" else snapshot.language_id
    context = context_of(selection, diagnostics)
    prompt = edit_prompt(engine.tokenizer, instruction, shown, language, context)
    limit = answer_limit(prompt.source[1] - prompt.source[0])
    if len(prompt.ids) + limit > engine.context:
        raise NoEditError(
            NoEdit.TOO_LONG,
            f"The selection and its answer need {len(prompt.ids) + limit} tokens, the context holds"
            f" {engine.context}: select less, or raise `context`.",
        )
    request = GenerationRequest(
        prompt=prompt.ids,
        document=edit_document(snapshot.uri),
        max_new_tokens=limit,
        stops=StopRules(token_ids=prompt.stop_ids, strings=(f"\n{prompt.fence}",)),
        temperature=options.temperature,
        seed=options.seed,
        use_cache=options.use_cache,
        source_hint=prompt.source,
    )
    return PreparedEdit(selection, prompt, request, Rewrite(selection, instruction, layout, prompt.fence))


def edit_document(uri: str) -> str:
    """The engine's name for the edits of a document: they have a KV slot of their own."""
    return f"{uri}#edit"


class EditService:
    """Answers edits of open documents. Lives on the event loop."""

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
        self._running: Counter[str] = Counter()  # edits by document

    async def edit(
        self,
        request: EditRequest,
        options: EditOptions,
        on_progress: Callable[[Selection, Progress], None] = lambda selection, progress: None,
        allowed: Callable[[Snapshot], Reason | None] = lambda snapshot: None,
    ) -> EditAnswer:
        """The edit that a request asks for. Cancelling the task stops the decoding; nothing is changed.

        Args:
            on_progress: called on the event loop whenever more is certain.
            allowed: a reason not to answer for this text.
        """
        selection: Selection | None = None
        try:
            selection = self._selection(request, allowed)
            prepared = prepare_edit(
                selection, request.instruction, self._ready_engine(), options, request.diagnostics
            )
            return await self._run(prepared, on_progress)
        except Withheld as withheld:
            return refused(NoEditError(NoEdit(withheld.reason.value)), selection)
        except NoEditError as none:
            return refused(none, selection)
        except DraftlineError as error:
            return EditAnswer(error.code, str(error), selection)

    async def warm_up(
        self, request: EditRequest, allowed: Callable[[Snapshot], Reason | None] = lambda snapshot: None
    ) -> bool:
        """Read what the prompt has before the instruction, which the user is still typing.

        Returns:
            whether it was read; whatever is wrong will be said when the edit is asked for.
        """
        if self._running[request.uri]:
            return False  # it would take the place of an edit that somebody waits for
        try:
            selection = self._selection(request, allowed)
            prepared = prepare_edit(selection, "-", self._ready_engine(), EditOptions(), request.diagnostics)
            engine = self._ready_engine()
            ids = prepared.request.prompt[: prepared.prompt.stable]
            generation = engine.submit(
                replace(prepared.request, prompt=ids, max_new_tokens=1, background=True)
            )
            result = await asyncio.wrap_future(generation.future)
        except (Withheld, NoEditError, DraftlineError):
            return False
        return result.finish_reason not in _ENDED

    def closed(self, uri: str) -> None:
        """A document was closed."""
        engine = self._engine()
        if engine is not None:
            engine.close_document(edit_document(uri))

    async def _run(
        self, prepared: PreparedEdit, on_progress: Callable[[Selection, Progress], None]
    ) -> EditAnswer:
        selection, rewrite = prepared.selection, prepared.rewrite
        uri = selection.snapshot.uri
        generation = self._ready_engine().submit(prepared.request)
        self._running[uri] += 1
        try:
            async for chunk in chunks(generation):
                if rewrite.feed(chunk.text):
                    self._check_version(selection)
                    on_progress(selection, rewrite.progress)
                if rewrite.done:
                    break
            done = rewrite.done
            if done:
                # The code has ended; what else the model has to say is not wanted.
                generation.cancel()
            result = await asyncio.wrap_future(generation.future)
        except BaseException:
            generation.cancel()
            raise
        finally:
            self._running[uri] -= 1
            self._running += Counter()  # documents without an edit are not kept
        if not done and (reason := _ENDED.get(result.finish_reason)) is not None:
            raise NoEditError(reason)
        self._check_version(selection)
        try:
            rewritten = rewrite.finish(result.finish_reason in TRUNCATED)
        except NoEditError as none:
            return replace(refused(none, selection), result=result)
        return EditAnswer(selection=selection, rewritten=rewritten, result=result)

    def _selection(self, request: EditRequest, allowed: Callable[[Snapshot], Reason | None]) -> Selection:
        snapshot = self._store.get(request.uri).snapshot()
        refusal = allowed(snapshot)
        if refusal is not None:
            raise NoEditError(NoEdit(refusal.value))
        if request.version is not None and request.version != snapshot.version:
            raise NoEditError(
                NoEdit.STALE,
                f"The edit was asked for version {request.version}, the document is at {snapshot.version};"
                " ask again.",
            )
        # Not Path.exists: it raises where a directory above must not be looked into.
        path = request.path
        if path is not None and os.path.exists(path) and not os.access(path, os.W_OK):
            raise NoEditError(NoEdit.READ_ONLY)
        encoding = self._store.encoding
        return Selection.of(
            snapshot, snapshot.locate(request.start, encoding), snapshot.locate(request.end, encoding)
        )

    def _check_version(self, selection: Selection) -> None:
        if self._store.version(selection.snapshot.uri) != selection.snapshot.version:
            raise NoEditError(NoEdit.STALE)

    def _ready_engine(self) -> TextEngine:
        engine = self._engine()
        status = self._status() if engine is None else engine.status
        if engine is not None and status.state is EngineState.READY:
            return engine
        if status.state is EngineState.FAILED:
            raise NoEditError(NoEdit.FAILED, status.message)
        if status.state is EngineState.STOPPED:
            raise NoEditError(NoEdit.STOPPED)
        raise NoEditError(NoEdit.LOADING, status.message)


def refused(none: NoEditError, selection: Selection | None = None) -> EditAnswer:
    """The answer without an edit."""
    return EditAnswer(none.reason, none.message, selection)
