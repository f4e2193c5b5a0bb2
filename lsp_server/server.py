"""The routes: each handler turns LSP types into ours, calls one service and turns its answer back."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from inference.api import EngineState, EngineStatus
from lsp_server import __version__, protocol
from lsp_server.completion.reasons import Reason
from lsp_server.completion.service import Answer, CompletionService
from lsp_server.context.exclusions import Exclusions
from lsp_server.documents.positions import PositionEncoding, to_units
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Change, Point, Snapshot
from lsp_server.engine_host import EngineFactory, EngineHost, load_engine
from lsp_server.inline_edit import routes as inline_edit_routes
from lsp_server.inline_edit.service import EditService
from lsp_server.load_progress import LoadProgress
from lsp_server.parent import until_gone
from lsp_server.rpc import DraftlineProtocol
from lsp_server.settings import SECTION, Settings, merge
from lsp_server.status import StatusReporter

_log = logging.getLogger(__name__)

# A client that does not answer workspace/configuration must not keep the model from loading.
_CONFIGURATION_SECONDS = 3.0


class DraftlineServer(LanguageServer):
    """One client's server: the services and what they share."""

    protocol: DraftlineProtocol

    def __init__(self, base: Settings, engine_factory: EngineFactory = load_engine) -> None:
        super().__init__("draftline", __version__, protocol_cls=DraftlineProtocol)
        self.base = base
        self.settings = base
        self.initial: object = None
        self.store = DocumentStore()
        self.exclusions = Exclusions()
        self.host = EngineHost(engine_factory, self.engine_changed)
        self.completion = CompletionService(self.store, lambda: self.host.engine, lambda: self.host.status)
        self.status = StatusReporter(lambda params: self.protocol.notify(protocol.STATUS, params.to_json()))
        self.load_progress = LoadProgress(self.protocol)
        self.accepted: set[str] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._items = 0
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

    def say(self, message: str, kind: types.MessageType) -> None:
        """Show a message to the user."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=message))

    def configure(self, *sources: object) -> None:
        """Take settings from ``sources``, later ones over earlier; start or restart the engine if
        what it runs has changed. While suggestions are switched off nothing is loaded."""
        settings = self.base
        for values in sources:
            settings, warnings, unknown = merge(settings, values)
            for warning in warnings:
                self.say(warning, types.MessageType.Warning)
            if unknown:
                _log.info("unknown settings: %s", ", ".join(unknown))
        if settings != self.settings:
            self.completion.suggestions.clear()
        self.settings = settings
        if settings.enable and self.host.config != settings.engine_config():
            self.host.start(settings.engine_config())

    def next_item_id(self) -> str:
        """Identifies an item in the accepted command."""
        self._items += 1
        return f"{os.getpid()}-{self._items}"

    def spawn(self, coroutine: Any) -> None:
        """Run in the background; the reference keeps the task from being collected."""
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def excluded(self, uri: str) -> bool:
        """Whether a document must not be stored. Only files have a name to judge."""
        path = to_fs_path(uri) if uri.startswith("file:") else None
        return path is not None and self.exclusions.excludes(Path(path))

    def learn(self, uri: str) -> None:
        """Let the engine's guesses draw on a document, unless it is excluded or not to be answered for."""
        engine = self.host.engine
        if engine is None or self.store.version(uri) is None:
            return
        snapshot = self.store.get(uri).snapshot()
        refusal = self.refusal(snapshot)
        if refusal is None:
            engine.learn(uri, snapshot.lf(0, len(snapshot.lines)))
        elif refusal is Reason.DISABLED:
            engine.close_document(uri)

    def learn_all(self) -> None:
        """The same for all open documents, as rules or settings may have changed."""
        for uri in list(self.store.uris):
            self.learn(uri)

    def refusal(self, snapshot: Snapshot) -> Reason | None:
        """A reason not to answer for a stored document."""
        if not self.settings.answers(snapshot.language_id):
            return Reason.DISABLED
        if self.excluded(snapshot.uri):
            # The ignore file has changed since the document was opened.
            self.completion.closed(snapshot.uri)
            self.store.withhold(snapshot.uri, Reason.EXCLUDED)
            return Reason.EXCLUDED
        return None


def create_server(base: Settings, engine_factory: EngineFactory = load_engine) -> DraftlineServer:
    """A server with all routes; ``base`` are the settings where the client sends none."""
    server = DraftlineServer(base, engine_factory)
    server.feature(types.INITIALIZE)(_initialize)
    server.feature(types.INITIALIZED)(_initialized)
    server.feature(types.SHUTDOWN)(_shutdown)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_did_close)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))(_did_save)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(_did_change_configuration)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(_did_change_folders)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(_inline_completion)
    server.command(protocol.ACCEPTED)(_accepted)
    server.command(protocol.RESTART)(_restart)
    server.edits = inline_edit_routes.register(server)
    return server


def _initialize(ls: DraftlineServer, params: types.InitializeParams) -> None:
    ls.store.encoding = _encoding(ls)
    ls.initial = params.initialization_options
    ls.protocol.trace = params.trace or types.TraceValue.Off
    ls.load_progress.enable(params.capabilities)
    _set_roots(ls)
    if params.process_id is not None:
        ls.spawn(_exit_with(params.process_id))


async def _initialized(ls: DraftlineServer, params: types.InitializedParams) -> None:
    workspace = ls.client_capabilities.workspace
    dynamic = workspace and workspace.did_change_configuration
    if dynamic and dynamic.dynamic_registration:
        ls.spawn(_register_configuration(ls))
    ls.configure(ls.initial, await _configuration(ls))


def _shutdown(ls: DraftlineServer, params: Any = None) -> None:
    ls.completion.shutdown()
    ls.host.close()


def _did_open(ls: DraftlineServer, params: types.DidOpenTextDocumentParams) -> None:
    document = params.text_document
    ls.completion.closed(document.uri)
    ls.store.open(
        document.uri,
        document.version,
        str(document.language_id),
        document.text,
        excluded=ls.excluded(document.uri),
    )
    ls.learn(document.uri)


def _did_change(ls: DraftlineServer, params: types.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.store.change(uri, params.text_document.version, map(_change, params.content_changes))
    ls.completion.debounce.edited(uri)


def _did_close(ls: DraftlineServer, params: types.DidCloseTextDocumentParams) -> None:
    if ls.edits is not None:
        ls.edits.closed(params.text_document.uri)
    ls.completion.closed(params.text_document.uri)
    ls.store.close(params.text_document.uri)


def _did_save(ls: DraftlineServer, params: types.DidSaveTextDocumentParams) -> None:
    """What is saved is worth guessing from. Announced also because some clients save only where it is."""
    if params.text_document.uri.endswith("ignore"):  # an ignore file, perhaps
        ls.learn_all()
    else:
        ls.learn(params.text_document.uri)


async def _did_change_configuration(ls: DraftlineServer, params: types.DidChangeConfigurationParams) -> None:
    asked = await _configuration(ls)
    ls.configure(ls.initial, params.settings if asked is None else asked)
    ls.learn_all()


def _did_change_folders(ls: DraftlineServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    _set_roots(ls)
    ls.learn_all()


async def _inline_completion(
    ls: DraftlineServer, params: types.InlineCompletionParams
) -> list[types.InlineCompletionItem] | None:
    uri = params.text_document.uri
    version = ls.store.version(uri)
    automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    info = params.context.selected_completion_info
    selected = None if info is None else (_point(info.range.start), _point(info.range.end), info.text)
    try:
        answer = await ls.completion.complete(
            uri,
            _point(params.position),
            ls.settings.completion_options(),
            debounce_ms=ls.settings.debounce_ms if automatic else 0,
            selected=selected,
            allowed=ls.refusal,
        )
    except Withheld as withheld:
        answer = Answer(None, withheld.reason)
    except asyncio.CancelledError:
        ls.status.answered(uri, Reason.CANCELLED.value)
        raise
    except Exception:
        _log.exception("a completion failed")
        answer = Answer(None, Reason.ERROR)
    reason = str(getattr(answer.reason, "value", answer.reason))
    ls.status.answered(uri, reason, answer.message)
    if ls.protocol.trace != types.TraceValue.Off:
        trace = protocol.TraceParams(uri, version or 0, answer.source, reason, answer.result)
        ls.protocol.notify(protocol.TRACE, trace.to_json())
    if answer.suggestion is None:
        return None if answer.superseded else []
    return [_item(ls, answer)]


def _accepted(ls: DraftlineServer, *arguments: Any) -> None:
    if arguments:
        ls.accepted.add(str(arguments[0]))
        _log.info("accepted %s", arguments[0])


def _restart(ls: DraftlineServer, *arguments: Any) -> None:
    ls.completion.shutdown()
    ls.host.start(ls.settings.engine_config())


def _item(ls: DraftlineServer, answer: Answer) -> types.InlineCompletionItem:
    suggestion = answer.suggestion
    assert suggestion is not None
    encoding = ls.store.encoding
    start = to_units(answer.line, suggestion.range.start, encoding)
    end = to_units(answer.line, suggestion.range.end, encoding)
    return types.InlineCompletionItem(
        insert_text=suggestion.text,
        filter_text=suggestion.text,
        range=types.Range(types.Position(answer.row, start), types.Position(answer.row, end)),
        command=types.Command("Accepted", protocol.ACCEPTED, arguments=[ls.next_item_id()]),
    )


def _encoding(ls: DraftlineServer) -> PositionEncoding:
    chosen = ls.workspace.position_encoding
    value = getattr(chosen, "value", chosen)
    if value == "utf-8":
        return "utf-8"
    return "utf-32" if value == "utf-32" else "utf-16"


def _set_roots(ls: DraftlineServer) -> None:
    uris = [folder.uri for folder in ls.workspace.folders.values()]
    if not uris and ls.workspace.root_uri:
        uris = [ls.workspace.root_uri]
    paths = [to_fs_path(uri) for uri in uris if uri.startswith("file:")]
    ls.exclusions.set_roots([Path(path) for path in paths if path])


async def _configuration(ls: DraftlineServer) -> object:
    """The client's settings, None if it cannot be asked or does not answer."""
    workspace = ls.client_capabilities.workspace
    if not (workspace and workspace.configuration):
        return None
    items = [types.ConfigurationItem(section=SECTION)]
    try:
        request = ls.workspace_configuration_async(types.ConfigurationParams(items=items))
        answer = await asyncio.wait_for(request, _CONFIGURATION_SECONDS)
    except Exception as error:
        _log.warning("the client did not tell its settings: %s", error or type(error).__name__)
        return None
    return answer[0] if answer else None


async def _register_configuration(ls: DraftlineServer) -> None:
    method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
    registration = types.Registration(
        id="draftline-configuration", method=method, register_options={"section": SECTION}
    )
    try:
        await ls.client_register_capability_async(types.RegistrationParams([registration]))
    except Exception as error:
        _log.info("the client does not announce changes of settings: %s", error)


async def _exit_with(process_id: int) -> None:
    await until_gone(process_id)
    _log.warning("the client's process %d is gone", process_id)
    logging.shutdown()
    # Not sys.exit: a model that is loading or decoding would be waited for.
    os._exit(1)


def _point(position: types.Position) -> Point:
    return Point(position.line, position.character)


def _change(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        return Change(event.text, _point(event.range.start), _point(event.range.end))
    return Change(event.text)
