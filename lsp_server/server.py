"""The routes: each handler turns LSP types into ours, calls one service and turns its answer back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from inference import paths
from inference.api import EngineState, EngineStatus
from lsp_server import __version__, configuration_routes, notebook_routes, protocol
from lsp_server.completion.clients import ClientProfile, profile_for
from lsp_server.completion.items import Result, build_result
from lsp_server.completion.pipeline import Suggestion
from lsp_server.completion.reasons import Reason
from lsp_server.completion.service import Answer, CompletionService
from lsp_server.context.exclusions import Exclusions, names_secret
from lsp_server.context.gather import ContextGatherer
from lsp_server.context.workspaces import uri_of
from lsp_server.documents.bounds import excerpt
from lsp_server.documents.notebook import Notebooks
from lsp_server.documents.positions import PositionEncoding
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Change, Point, Snapshot
from lsp_server.engine_host import SHARING_VARIABLE, EngineFactory, EngineHost, Sharing, load_engine
from lsp_server.inline_edit import routes as inline_edit_routes
from lsp_server.inline_edit.service import EditService
from lsp_server.load_progress import LoadProgress
from lsp_server.parent import until_gone
from lsp_server.rpc import DraftlineProtocol
from lsp_server.settings import Settings, merge
from lsp_server.statistics import Statistics
from lsp_server.status import StatusReporter
from lsp_server.workspace import WorkspaceFolders, path_of

_log = logging.getLogger(__name__)

# Statistics that a crash may lose.
_SAVE_SECONDS = 60.0


class DraftlineServer(LanguageServer):
    """One client's server: the services and what they share."""

    protocol: DraftlineProtocol

    def __init__(self, base: Settings, engine_factory: EngineFactory = load_engine) -> None:
        super().__init__(
            "draftline",
            __version__,
            protocol_cls=DraftlineProtocol,
            notebook_document_sync=notebook_routes.SYNC,
        )
        self.base = base
        self.settings = base
        self.initial: object = None
        self.client = types.ClientInfo("")
        self.store = DocumentStore()
        self.notebooks = Notebooks(self.store)
        self.folders = WorkspaceFolders()
        self.folder_values: dict[str, object] = {}
        self.exclusions = Exclusions()
        self.host = EngineHost(engine_factory, self.engine_changed)
        self.statistics = Statistics(paths.statistics_file())
        self.context = ContextGatherer(self.store, self.hidden_path, lambda: self.completion.busy)
        self.completion = CompletionService(
            self.store, lambda: self.host.engine, lambda: self.host.status, self.statistics, self.context
        )
        self.completion.prefetch.enabled = True
        self.completion.prefetch.allowed = lambda uri: self.settings_of(uri).prefetch
        self.completion.asking.view = self.notebooks.joined
        self.completion.asking.view_version = self.notebooks.around
        self.context.owner = self.notebooks.owner
        self.store.on_forget = self.forget
        self.learned: set[str] = set()
        self.completion.on_grown = self._grown
        self.status = StatusReporter(lambda params: self.protocol.notify(protocol.STATUS, params.to_json()))
        self.load_progress = LoadProgress(self.protocol)
        self.tasks: set[asyncio.Task[Any]] = set()
        self._items = 0
        self._saved = time.monotonic()
        self.edits: EditService | None = None

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors go to the log: a popup for each would come at every key."""
        _log.error("%s: %s", getattr(source, "__name__", source), error)

    def engine_changed(self, status: EngineStatus) -> None:
        """Tell the client about the engine; a failure also by a message, which no client hides."""
        self.status.engine_changed(status)
        self.load_progress.update(status)
        if status.state is EngineState.READY:
            self.learn_all()
        if status.state is EngineState.FAILED:
            self.say(f"Draftline: {status.message} {status.next_step}".strip(), types.MessageType.Error)

    @property
    def profile(self) -> ClientProfile:
        """What the client does with items."""
        return profile_for(self.settings.client, self.client.name, self.client.version)

    @property
    def sharing(self) -> Sharing | None:
        """How the engine is shared; the environment has the last word, for tests and measurements."""
        return None if os.environ.get(SHARING_VARIABLE) == "0" else self.settings.sharing()

    def say(self, message: str, kind: types.MessageType) -> None:
        """Show a message to the user."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=message))

    def configure(self, *sources: object) -> None:
        """Take settings from ``sources``, later ones over earlier; start or restart the engine if
        what it runs has changed. While suggestions are switched off nothing is loaded."""
        settings = self.base
        said: list[str] = []
        for values in sources:
            settings, warnings, unknown = merge(settings, values)
            said += warnings
            if unknown:
                _log.info("unknown settings: %s", ", ".join(unknown))
        respected = self._respects_gitignore()
        changed, warnings = self.folders.configure(settings, self.folder_values)
        for warning in dict.fromkeys(said + warnings):
            self.say(warning, types.MessageType.Warning)
        if changed or settings != self.settings:
            self.completion.reset()
        self.settings = settings
        if self._respects_gitignore() != respected:
            self.context.rules_changed()  # its indexes have read by the old ones
        self.statistics.enabled = settings.statistics
        engine, sharing = settings.engine_config(), self.sharing
        present = self.host.config == engine and self.host.sharing == sharing
        if (settings.enable or self.folders.any_enabled()) and not present:
            self.host.start(engine, sharing)

    def _respects_gitignore(self) -> list[bool]:
        return [self.settings_of(uri).respect_gitignore for uri in ("", *self.folders.uris)]

    def _grown(self, uri: str, version: int) -> None:
        if self.profile.asks_again:
            self.protocol.notify(protocol.GROWN, {"uri": uri, "version": version})

    def next_item_id(self) -> str:
        """Identifies an item in the accepted command."""
        self._items += 1
        return f"{os.getpid()}-{self._items}"

    def counted(self, answer: Answer, reason: str, began: float) -> None:
        """Count an answer; ``began`` is when its request came."""
        self.statistics.answered(answer.source, reason, (time.monotonic() - began) * 1000)
        if time.monotonic() - self._saved > _SAVE_SECONDS:
            self._saved = time.monotonic()
            self.spawn(asyncio.to_thread(self.statistics.save))

    def spawn(self, coroutine: Any) -> None:
        """Run in the background; the reference keeps the task from being collected."""
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def excluded(self, uri: str) -> bool:
        """Whether a document must not be stored, by its path or, where it is no file of this machine, by what
        its URI says; cells go by their notebook."""
        owner = self.notebooks.owner(uri)
        path = path_of(owner)
        return names_secret(owner) if path is None else self.exclusions.excludes(path)

    def settings_of(self, uri: str) -> Settings:
        """The settings that hold for a document."""
        return self.folders.settings_of(self.notebooks.owner(uri), self.settings)

    def open_document(self, document: types.TextDocumentItem) -> None:
        """Follow a document or a notebook's cell."""
        uri = document.uri
        self.forget(uri)
        language = str(document.language_id)
        self.store.open(uri, document.version, language, document.text, excluded=self.excluded(uri))
        self.context.opened(uri)
        self.learn(uri)

    def change_document(
        self, uri: str, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]
    ) -> None:
        """Take over edits of a document or a cell."""
        edits = [_change(change) for change in changes]
        self.store.change(uri, version, edits)
        self.completion.edited(uri, edits)

    def close_document(self, uri: str) -> None:
        """Forget a document or a cell."""
        self.forget(uri)
        self.store.close(uri)

    def forget(self, uri: str) -> None:
        """Drop everything that was made of a document's text so far."""
        self.completion.closed(uri)
        self.context.closed(uri)
        self.notebooks.forget(uri)
        if self.edits is not None:
            self.edits.closed(uri)
        self.learned.discard(uri)

    def learn(self, uri: str) -> None:
        """Let the engine's guesses draw on a document, unless it is excluded or not to be answered for."""
        engine = self.host.engine
        if engine is None or self.store.version(uri) is None:
            return
        snapshot = self.store.get(uri).snapshot()
        refusal = self.refusal(snapshot)
        if refusal is None and not self.hidden(uri):
            engine.learn(uri, excerpt(snapshot, self.store.edited_line(uri)))
            self.learned.add(uri)
        elif uri in self.learned:
            self.forget(uri)

    def hidden_path(self, path: Path) -> bool:
        """Whether a file must not be read for others: it is excluded, or git ignores it."""
        if self.exclusions.excludes(path):
            return True
        return self.settings_of(uri_of(path)).respect_gitignore and self.exclusions.git_ignores(path)

    def hidden(self, uri: str) -> bool:
        """Whether a document is no source for others: git ignores it."""
        path = path_of(self.notebooks.owner(uri))
        respect = self.settings_of(uri).respect_gitignore
        return path is not None and respect and self.exclusions.git_ignores(path)

    def learn_all(self) -> None:
        """The same for all open documents, as rules or settings may have changed."""
        for uri in list(self.store.uris):
            self.learn(uri)

    def refusal(self, snapshot: Snapshot) -> Reason | None:
        """A reason not to answer for a stored document."""
        settings = self.settings_of(snapshot.uri)
        folder_off = self.folders.disabled(self.notebooks.owner(snapshot.uri), settings)
        if folder_off or not settings.answers(snapshot.language_id):
            return Reason.DISABLED
        if self.excluded(snapshot.uri):
            # The ignore file has changed since the document was opened.
            self.store.withhold(snapshot.uri, Reason.EXCLUDED)
            self.context.rules_changed()
            return Reason.EXCLUDED
        return None


def create_server(base: Settings, engine_factory: EngineFactory = load_engine) -> DraftlineServer:
    """A server with all routes; ``base`` are the settings where the client sends none."""
    server = DraftlineServer(base, engine_factory)
    server.feature(types.INITIALIZE)(_initialize)
    server.feature(types.SHUTDOWN)(_shutdown)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_did_close)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))(_did_save)
    notebook_routes.register(server)
    configuration_routes.register(server)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(_inline_completion)
    server.feature(protocol.CURSOR)(_cursor)
    server.feature(protocol.STATISTICS)(_statistics)
    server.command(protocol.ACCEPTED)(_accepted)
    server.command(protocol.RESTART)(_restart)
    server.edits = inline_edit_routes.register(server)
    return server


def _initialize(ls: DraftlineServer, params: types.InitializeParams) -> None:
    ls.store.encoding = _encoding(ls)
    ls.initial = params.initialization_options
    ls.client = params.client_info or ls.client
    ls.protocol.trace = params.trace or types.TraceValue.Off
    ls.load_progress.enable(params.capabilities)
    configuration_routes.set_roots(ls)
    if params.process_id is not None:
        ls.spawn(_exit_with(params.process_id))


def _shutdown(ls: DraftlineServer, params: Any = None) -> None:
    ls.completion.shutdown()
    ls.context.close()
    ls.statistics.save()
    ls.host.close()


def _did_open(ls: DraftlineServer, params: types.DidOpenTextDocumentParams) -> None:
    ls.open_document(params.text_document)


def _did_change(ls: DraftlineServer, params: types.DidChangeTextDocumentParams) -> None:
    ls.change_document(params.text_document.uri, params.text_document.version, params.content_changes)
    ls.context.changed(params.text_document.uri, _last_line(params.content_changes))


def _did_close(ls: DraftlineServer, params: types.DidCloseTextDocumentParams) -> None:
    ls.close_document(params.text_document.uri)


def _did_save(ls: DraftlineServer, params: types.DidSaveTextDocumentParams) -> None:
    """What is saved is worth guessing from. Announced also because some clients save only where it is."""
    if params.text_document.uri.endswith("ignore"):  # an ignore file, perhaps
        ls.learn_all()
        ls.context.rules_changed()
    else:
        ls.learn(params.text_document.uri)
    ls.context.saved(params.text_document.uri)


async def _inline_completion(ls: DraftlineServer, params: types.InlineCompletionParams) -> Result:
    began = time.monotonic()
    uri = params.text_document.uri
    version = ls.store.version(uri)
    profile = ls.profile
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    info = params.context.selected_completion_info
    selected = None if info is None else (_point(info.range.start), _point(info.range.end), info.text)
    settings = ls.settings_of(uri)
    try:
        answer = await ls.completion.complete(
            uri,
            _point(params.position),
            settings.completion_options(profile.replaces_rest),
            debounce_ms=settings.debounce_ms if automatic and not profile.waits else 0,
            first_line_ms=settings.first_line_ms if automatic else 0,
            candidates=1 if automatic else settings.candidates,
            selected=selected,
            allowed=ls.refusal,
        )
    except Withheld as withheld:
        answer = Answer(None, withheld.reason)
    except asyncio.CancelledError:
        ls.counted(Answer(None), Reason.CANCELLED.value, began)
        ls.status.answered(uri, Reason.CANCELLED.value)
        raise
    except Exception:
        _log.exception("a completion failed")
        answer = Answer(None, Reason.ERROR)
    reason = str(getattr(answer.reason, "value", answer.reason))
    ls.counted(answer, reason, began)
    ls.status.answered(uri, reason, answer.message)
    if ls.protocol.trace != types.TraceValue.Off:
        trace = protocol.TraceParams(uri, version or 0, answer.source, reason, answer.result)
        ls.protocol.notify(protocol.TRACE, trace.to_json())

    def name(suggestion: Suggestion) -> str:
        id = ls.next_item_id()
        ls.completion.acceptance.item(id, uri, len(suggestion.text))
        ls.context.shown(id, uri, answer.row)
        return id

    return build_result(answer, ls.store.encoding, profile, name)


def _cursor(ls: DraftlineServer, params: Any) -> None:
    try:
        uri, position = protocol.cursor_of(params)
    except (AttributeError, TypeError, ValueError):
        _log.warning("%s: wrong parameters: %r", protocol.CURSOR, params)
        return
    settings = ls.settings_of(uri)
    if settings.prefetch:
        options = settings.completion_options(ls.profile.replaces_rest)
        with contextlib.suppress(Withheld):
            ls.completion.rests(uri, position, options, ls.refusal)


def _accepted(ls: DraftlineServer, *arguments: Any) -> None:
    if not arguments:
        return
    ls.context.accepted(str(arguments[0]))
    if (taken := ls.completion.acceptance.accepted(str(arguments[0]))) is not None:
        ls.completion.accepted(taken.amount, taken.characters)


def _statistics(ls: DraftlineServer, params: Any = None) -> dict[str, Any]:
    return ls.statistics.totals().report()


def _restart(ls: DraftlineServer, *arguments: Any) -> None:
    ls.completion.shutdown()
    ls.host.start(ls.settings.engine_config(), ls.sharing)


def _encoding(ls: DraftlineServer) -> PositionEncoding:
    chosen = ls.workspace.position_encoding
    value = getattr(chosen, "value", chosen)
    if value == "utf-8":
        return "utf-8"
    return "utf-32" if value == "utf-32" else "utf-16"


async def _exit_with(process_id: int) -> None:
    await until_gone(process_id)
    _log.warning("the client's process %d is gone", process_id)
    logging.shutdown()
    # Not sys.exit: a model that is loading or decoding would be waited for.
    os._exit(1)


def _point(position: types.Position) -> Point:
    return Point(position.line, position.character)


def _last_line(events: Sequence[types.TextDocumentContentChangeEvent]) -> int | None:
    """Where the last edit was, None if it was the whole text."""
    last = events[-1] if events else None
    return last.range.start.line if isinstance(last, types.TextDocumentContentChangePartial) else None


def _change(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        return Change(event.text, _point(event.range.start), _point(event.range.end))
    return Change(event.text)
