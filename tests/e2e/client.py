"""A small LSP client for tests: JSON-RPC over any pair of asyncio streams."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
UTF8 = {"general": {"positionEncodings": ["utf-8", "utf-16"]}}


class RequestFailed(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]


class Client:
    """Sends, receives, keeps every notification, and answers the server's requests.

    ``configuration`` is what workspace/configuration is answered with; ``handlers`` can answer any
    other request of the server. ``requests`` are the server's requests as they came.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.notifications: list[tuple[str, Any]] = []
        self.requests: list[tuple[str, Any]] = []
        self.configuration: Any = None
        self.handlers: dict[str, Callable[[Any], Any]] = {}
        self.process: asyncio.subprocess.Process | None = None
        self.result: dict[str, Any] = {}
        self.violations: list[bytes] = []
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._arrived = asyncio.Condition()
        self._count = 0
        self._versions: dict[str, int] = {}
        self._task = asyncio.ensure_future(self._receive())

    @classmethod
    async def start(cls, *command: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> Client:
        """Start ``python COMMAND`` and talk over its stdin and stdout."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            cwd=cwd,
            limit=2**26,
        )
        assert process.stdin is not None and process.stdout is not None
        client = cls(process.stdout, process.stdin)
        client.process = process
        return client

    async def initialize(
        self,
        *,
        capabilities: dict[str, Any] | None = None,
        options: Any = None,
        root: Path | None = None,
        process_id: int | None = None,
        name: str = "",
    ) -> float:
        """The handshake; returns the seconds until the answer."""
        began = time.monotonic()
        self.result = await self.request(
            "initialize",
            {
                "processId": process_id,
                "clientInfo": {"name": name} if name else None,
                "rootUri": root.as_uri() if root else None,
                "workspaceFolders": [{"uri": root.as_uri(), "name": "root"}] if root else None,
                "capabilities": UTF8 if capabilities is None else capabilities,
                "initializationOptions": options,
            },
        )
        elapsed = time.monotonic() - began
        self.notify("initialized", {})
        return elapsed

    async def ready(self, state: str = "ready", timeout: float = 120) -> None:
        """Wait for the engine to be in ``state``."""
        await self.status(lambda params: params["state"] == state, timeout)

    async def status(self, accept: Callable[[Any], bool], timeout: float = 10) -> Any:
        """The first ``draftline/status``, past ones included, that ``accept`` likes."""
        return await self.notification("draftline/status", accept, timeout)

    async def notification(
        self, method: str, accept: Callable[[Any], bool] = lambda params: True, timeout: float = 10
    ) -> Any:
        """The first notification ``method``, past ones included, that ``accept`` likes."""

        def found() -> list[Any]:
            return [params for name, params in self.notifications if name == method and accept(params)]

        async with asyncio.timeout(timeout), self._arrived:
            await self._arrived.wait_for(found)
            return found()[0]

    def open(self, uri: str, text: str, language: str = "python") -> None:
        self._versions[uri] = 1
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, text: str, start: tuple[int, int], end: tuple[int, int] | None = None) -> None:
        self._versions[uri] += 1
        change = {"range": {"start": place(*start), "end": place(*(end or start))}, "text": text}
        document = {"uri": uri, "version": self._versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def ask(self, uri: str, line: int, column: int, *, automatic: bool = False) -> tuple[int, Any]:
        """Send an inline completion request; its id and a future of the result."""
        params = {
            "textDocument": {"uri": uri},
            "position": place(line, column),
            "context": {"triggerKind": 2 if automatic else 1},
        }
        return self.send("textDocument/inlineCompletion", params)

    async def complete(self, uri: str, line: int, column: int, timeout: float = 60) -> Any:
        return await asyncio.wait_for(self.ask(uri, line, column)[1], timeout)

    async def request(self, method: str, params: Any = None, timeout: float = 60) -> Any:
        return await asyncio.wait_for(self.send(method, params)[1], timeout)

    def send(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[Any]]:
        self._count += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._count] = future
        self._write({"id": self._count, "method": method, "params": params})
        return self._count, future

    def notify(self, method: str, params: Any = None) -> None:
        self._write({"method": method, "params": params})

    def cancel(self, id: int) -> None:
        self.notify("$/cancelRequest", {"id": id})

    def write_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def shutdown(self, timeout: float = 10) -> int:
        """Say goodbye; the server's exit status."""
        await self.request("shutdown")
        self.notify("exit")
        return await self.wait(timeout)

    async def wait(self, timeout: float = 10) -> int:
        assert self.process is not None
        return await asyncio.wait_for(self.process.wait(), timeout)

    def hang_up(self) -> None:
        """Close the connection without a word."""
        self._writer.close()

    async def dispose(self) -> None:
        self._task.cancel()
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def _write(self, message: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", **{key: value for key, value in message.items() if value is not None}}
        body = json.dumps(message).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _receive(self) -> None:
        while True:
            length = None
            while (line := await self._reader.readline()) != b"\r\n":
                if not line:
                    self._fail_all()
                    return
                name, _, value = line.partition(b":")
                if name == b"Content-Length":
                    length = int(value)
                elif name != b"Content-Type":
                    self.violations.append(line)
            assert length is not None, "a message without a length"
            await self._handle(json.loads(await self._reader.readexactly(length)))

    async def _handle(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            self.requests.append((message["method"], message.get("params")))
            self._write_result(message["id"], self._answer(message["method"], message.get("params")))
        elif "method" in message:
            self.notifications.append((message["method"], message.get("params")))
        else:
            future = self._waiting.pop(message["id"], None)
            if future is not None and not future.done():
                if "error" in message:
                    future.set_exception(RequestFailed(message["error"]))
                else:
                    future.set_result(message["result"])
        async with self._arrived:
            self._arrived.notify_all()

    def _answer(self, method: str, params: Any) -> Any:
        if method in self.handlers:
            return self.handlers[method](params)
        if method == "workspace/configuration":
            return [self.configuration for _ in params["items"]]
        return None

    def _write_result(self, id: Any, result: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _fail_all(self) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the server closed the connection"))


def place(line: int, column: int) -> dict[str, int]:
    return {"line": line, "character": column}
