"""Any language server with inline completion as an ``Editor``: a process of its own, LSP over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psutil
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from bench.machine import cpu_seconds_of, memory_of
from bench.peers.base import PeerFailed, Reply, Usage
from bench.peers.open_document import OpenDocument
from lsp_server import protocol
from lsp_server.documents.positions import to_index, to_units

_LOG_LINES = 20
_STOP_SECONDS = 5.0


@dataclass(frozen=True)
class Timeouts:
    """Seconds to wait for the model to load, and for one answer."""

    start: float = 180.0
    answer: float = 30.0


class LspEditor:
    """Types into a language server as an editor does: utf-16 columns, automatic requests.

    Documents get names below a directory that does not exist, and there is no workspace: nothing of
    what is asked for can be read from disk.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        facts: dict[str, Any],
        settings: dict[str, Any] | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """``facts`` is what ``describe`` adds; ``settings`` are the initializationOptions."""
        self._name = name
        self._command = command
        self._facts = facts
        self._settings = settings or {}
        self._timeouts = timeouts or Timeouts()
        self._client: _Client | None = None
        self._document = OpenDocument()
        self._uri, self._version = "", 0
        self._command_of_item: types.Command | None = None
        self._running: tuple[str, asyncio.Future[None]] | None = None
        self._requests = 0
        self._began = 0.0

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    async def start(self) -> None:
        """Start the server and wait until its engine is ready.

        Raises:
            PeerFailed: it ends, refuses, or does not get ready in time.
        """
        client = self._client = _Client()
        try:
            await asyncio.wait_for(self._handshake(client), self._timeouts.start)
        except (OSError, RuntimeError, JsonRpcException, asyncio.TimeoutError) as error:
            late = isinstance(error, asyncio.TimeoutError)
            words = "did not get ready in time" if late else str(error)
            await self.stop()
            raise PeerFailed(f"{self._name}: {words}\n{client.log}".rstrip()) from error

    def describe(self) -> dict[str, Any]:
        """Its name and version as it says, and its settings."""
        return {**self._facts, "settings": self._settings, "interface": "language server over stdio"}

    async def open(self, path: str, language: str, text: str) -> None:
        """Show a document under a new name."""
        self._uri = f"file:///replay/{uuid.uuid4().hex}/{quote(path)}"
        self._document, self._version, self._began = OpenDocument(text), 1, 0.0
        document = types.TextDocumentItem(self._uri, language, self._version, text)
        self._connected().text_document_did_open(types.DidOpenTextDocumentParams(document))

    async def change(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range."""
        range = types.Range(self._position(*start), self._position(*end))
        self._document.replace(start, end, text)
        self._version += 1
        # The answer's time counts from here: an editor sends change and request together.
        self._began = time.perf_counter()
        self._connected().text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self._version, self._uri),
                [types.TextDocumentContentChangePartial(range, text)],
            )
        )

    async def settle(self) -> None:
        """Nothing: whatever it does ahead gives way to the next request at once."""

    async def ask(self, line: int, column: int) -> Reply:
        """An automatic request; the one before is cancelled, as editors do."""
        client, version = self._connected(), self._version
        if client.ended:
            raise PeerFailed(f"{self._name} has ended\n{client.log}".rstrip())
        began = self._began or time.perf_counter()
        self._began = 0.0
        self._supersede()
        params = types.InlineCompletionParams(
            context=types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
            text_document=types.TextDocumentIdentifier(self._uri),
            position=self._position(line, column),
        )
        self._requests += 1
        identifier = f"key-{self._requests}"
        answer = client.protocol.send_request_async(
            types.TEXT_DOCUMENT_INLINE_COMPLETION, params, msg_id=identifier
        )
        superseded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = (identifier, superseded)
        await asyncio.wait(
            {answer, superseded}, timeout=self._timeouts.answer, return_when=asyncio.FIRST_COMPLETED
        )
        if not answer.done():
            answer.add_done_callback(_forget)
            if superseded.done():
                return Reply("superseded", "", column, column, None, "none")
            client.cancel_request(types.CancelParams(identifier))
            return Reply("timeout", "", column, column, None, "none")
        ms = _ms(began)
        if self._running is not None and self._running[0] == identifier:
            self._running = None
        if (error := answer.exception()) is not None:
            if superseded.done():
                return Reply("superseded", "", column, column, ms, "none")
            return Reply("error", "", column, column, ms, "none", str(error))
        trace = client.traces.pop((self._uri, version), {})
        return self._reply(answer.result(), line, column, ms, trace)

    async def accepted(self, reply: Reply, whole: bool) -> None:
        """Run the item's command, as editors do after a whole acceptance."""
        command = self._command_of_item
        if whole and command is not None:
            params = types.ExecuteCommandParams(command.command, command.arguments)
            with contextlib.suppress(JsonRpcException, RuntimeError, asyncio.TimeoutError):
                await asyncio.wait_for(
                    self._connected().workspace_execute_command_async(params), self._timeouts.answer
                )

    async def close(self) -> None:
        """Close the document: the server forgets its text, cache and suggestions."""
        self._supersede()
        identifier = types.TextDocumentIdentifier(self._uri)
        self._connected().text_document_did_close(types.DidCloseTextDocumentParams(identifier))
        self._connected().traces.clear()

    async def usage(self) -> Usage:
        """Of the server's process and its children."""
        pids = self._connected().pids()
        private, mapped = memory_of(pids)
        return Usage(cpu_seconds_of(pids), private, mapped)

    async def stop(self) -> None:
        """Say goodbye; end the process if it does not go."""
        client, self._client = self._client, None
        if client is not None:
            await client.end()

    async def _handshake(self, client: _Client) -> None:
        await client.start_io(*self._command, start_new_session=True)
        client.watch()
        encodings = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16])
        await client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(general=encodings),
                initialization_options=self._settings,
                trace=types.TraceValue.Messages,
            )
        )
        client.initialized(types.InitializedParams())
        await client.ready()

    def _supersede(self) -> None:
        """Cancel the request before. It is not waited for: its answer is of no use to anybody."""
        if self._running is not None:
            identifier, superseded = self._running
            if not superseded.done():
                superseded.set_result(None)
                self._connected().cancel_request(types.CancelParams(identifier))
            self._running = None

    def _connected(self) -> _Client:
        if self._client is None:
            raise PeerFailed(f"{self._name} is not running")
        return self._client

    def _position(self, line: int, column: int) -> types.Position:
        return types.Position(line, to_units(self._document.lines[line], column, "utf-16"))

    def _reply(self, answer: Any, line: int, column: int, ms: float, trace: dict[str, Any]) -> Reply:
        items = getattr(answer, "items", answer)
        reason = str(trace.get("reason", ""))
        counts = {
            "prompt_tokens": trace.get("promptTokens"),
            "cached_tokens": trace.get("cachedTokens"),
            "tokens": trace.get("tokens"),
            "drafted": trace.get("drafted"),
            "accepted": trace.get("accepted"),
            "forwards": trace.get("forwards"),
            "first_ms": trace.get("ms", {}).get("first"),
            "model_ms": trace.get("ms", {}).get("total"),
        }
        # A server that sends no trace is taken to have asked a model for what it shows.
        source = trace.get("source", "model" if items else "none")
        source = {"stream": "model", "prefetch": "cache"}.get(source, source)
        if answer is None:
            return Reply("superseded", "", column, column, ms, source, reason, **counts)
        if not items:
            return Reply("nothing", "", column, column, ms, source, reason, **counts)
        item = items[0]
        self._command_of_item = item.command
        text = item.insert_text if isinstance(item.insert_text, str) else item.insert_text.value
        start = end = column
        if item.range is not None:
            text_of_line = self._document.lines[line]
            start = to_index(text_of_line, item.range.start.character, "utf-16")
            end = to_index(text_of_line, item.range.end.character, "utf-16")
        return Reply("shown", text, start, end, ms, source, reason, **counts)


class _Client(LanguageClient):
    """A client that keeps Draftline's status and traces and the end of the server's log."""

    def __init__(self) -> None:
        super().__init__("draftline-bench", "1")
        self.traces: dict[tuple[str, int], dict[str, Any]] = {}
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._settled: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None
        # pygls marks the functions it is given, which methods do not allow.
        self.feature(protocol.TRACE)(lambda params: self._on_trace(_plain(params)))
        self.feature(protocol.STATUS)(lambda params: self._on_status(_plain(params)))
        self.feature(types.WORKSPACE_CONFIGURATION)(lambda params: [None for _ in params.items])
        for ignored in (types.WINDOW_SHOW_MESSAGE, types.WINDOW_LOG_MESSAGE, types.PROGRESS):
            self.feature(ignored)(lambda params: None)

    @property
    def log(self) -> str:
        """The last lines of the server's stderr."""
        return "\n".join(self._log)

    @property
    def ended(self) -> bool:
        """Whether the server's process is gone."""
        return self._server is not None and self._server.returncode is not None

    def watch(self) -> None:
        """Read stderr, or the server would stand still when the pipe is full."""
        self._reading = asyncio.ensure_future(self._read_log())

    async def ready(self) -> None:
        """Wait for ``draftline/status``.

        Raises:
            RuntimeError: the engine failed, or the server ended.
        """
        status = await asyncio.shield(self._settled)
        if status["state"] != "ready":
            raise RuntimeError(f"{status.get('message', '')} {status.get('nextStep', '')}".strip())

    def pids(self) -> list[int]:
        """The server's process and its children."""
        assert self._server is not None
        try:
            process = psutil.Process(self._server.pid)
            return [process.pid, *(child.pid for child in process.children(recursive=True))]
        except psutil.Error:
            return []

    async def end(self) -> None:
        """shutdown, exit, and the end of the process one way or the other."""
        process = self._server
        if process is None:
            return
        try:
            if process.returncode is None:
                await asyncio.wait_for(self._goodbye(process), _STOP_SECONDS)
        except (OSError, RuntimeError, JsonRpcException, asyncio.TimeoutError):
            if process.returncode is None:
                process.kill()
                await process.wait()
        if self._reading is not None:
            await self._reading
        await self.stop()  # type: ignore[no-untyped-call]

    async def _goodbye(self, process: asyncio.subprocess.Process) -> None:
        await self.shutdown_async(None)
        self.exit(None)
        await process.wait()

    async def server_exit(self, server: asyncio.subprocess.Process) -> None:
        """Called by pygls when the process has ended."""
        self._on_status({"state": "ended", "message": f"the server ended with status {server.returncode}"})

    async def _read_log(self) -> None:
        assert self._server is not None and self._server.stderr is not None
        while line := await self._server.stderr.readline():
            self._log.append(line.decode("utf-8", "replace").rstrip())

    def _on_trace(self, trace: dict[str, Any]) -> None:
        self.traces[trace["uri"], trace["version"]] = trace

    def _on_status(self, status: dict[str, Any]) -> None:
        if status.get("state") in ("ready", "failed", "ended") and not self._settled.done():
            self._settled.set_result(status)


def draftline_editor(facts: dict[str, Any], settings: dict[str, Any], name: str = "draftline") -> LspEditor:
    """Draftline's own server, started with this Python."""
    # What is measured is no use that the user made of it.
    # A shared engine would have the user's own documents in its caches.
    settings = {**settings, "statistics": False, "sharedEngine": False}
    return LspEditor(name, [sys.executable, "-m", "lsp_server", "lsp"], facts, settings)


def _plain(value: Any) -> Any:
    """Parameters of methods that lsprotocol does not know come as named tuples, also nested ones."""
    if hasattr(value, "_asdict"):
        return {key: _plain(part) for key, part in value._asdict().items()}
    return value


def _forget(answer: asyncio.Future[Any]) -> None:
    """Without this an error that nobody waits for would be logged as never retrieved."""
    if not answer.cancelled():
        answer.exception()


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1000
