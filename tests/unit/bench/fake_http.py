"""An HTTP server in a thread that answers as a test says and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hang:
    """Say nothing (after ``events``) until the client closes the connection."""

    events: list[Any] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)


@dataclass
class Held:
    """Give ``answer`` when the test sets ``release``."""

    answer: Any
    release: threading.Event = field(default_factory=threading.Event)


@dataclass
class Raw:
    """Any bytes with any status."""

    data: bytes
    status: int = 200


class Events(list[Any]):
    """Objects for a stream of server-sent events."""


@dataclass
class Asked:
    path: str
    body: Any
    headers: dict[str, str]


class FakeHttp:
    """``answers`` by path: an object for JSON, one of the classes above, or a function of the body."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[Asked] = []
        self._changed = threading.Condition()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake._answer(self, None)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                fake._answer(self, json.loads(self.rfile.read(length)))

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def bodies(self, path: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.path == path]

    def wait_for(self, path: str, count: int, seconds: float = 5.0) -> list[Any]:
        """The bodies once there are ``count`` of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies(path)) >= count, seconds), self.asked
        return self.bodies(path)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        answer = self.answers.get(handler.path, Raw(b"no such path", 404))
        with self._changed:
            self.asked.append(Asked(handler.path, body, dict(handler.headers)))
            self._changed.notify_all()
        if callable(answer):
            answer = answer(body)
        if isinstance(answer, Held):
            assert answer.release.wait(10)
            answer = answer.answer
        if isinstance(answer, Hang):
            self._hang(handler, answer)
        elif isinstance(answer, Events):
            self._stream(handler, answer)
        else:
            raw = answer if isinstance(answer, Raw) else Raw(json.dumps(answer).encode())
            handler.send_response(raw.status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(raw.data)))
            handler.end_headers()
            handler.wfile.write(raw.data)

    def _hang(self, handler: BaseHTTPRequestHandler, hang: Hang) -> None:
        handler.connection.settimeout(10)
        with contextlib.suppress(ConnectionError):  # closed with something unread
            if hang.events:
                self._stream(handler, hang.events)
            assert not handler.connection.recv(1)
        hang.closed.set()

    def _stream(self, handler: BaseHTTPRequestHandler, events: list[Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            handler.wfile.write(f"data: {data}\n\n".encode())
        handler.wfile.flush()


@contextmanager
def fake_http() -> Iterator[FakeHttp]:
    server = FakeHttp()
    try:
        yield server
    finally:
        server.close()
