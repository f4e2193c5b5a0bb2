"""What an engine process does for its clients: one engine behind any number of connections.

Each client counts its requests and names its documents as if it were alone. Here both are kept apart: an id
is looked up in its client's own table, and the engine sees a document's name with the client's number in
front.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from inference.api import (
    Chunk,
    EngineConfig,
    EngineState,
    EngineStatus,
    Generation,
    GenerationRequest,
    GenerationResult,
    TextEngine,
)
from inference.errors import DraftlineError
from inference.sharing.channel import Channel
from inference.sharing.link import Link
from inference.sharing.messages import (
    Cancel,
    Done,
    Forget,
    Hello,
    Learn,
    Leave,
    Message,
    Ping,
    Pong,
    Refused,
    Said,
    State,
    Submit,
    Welcome,
)

_log = logging.getLogger(__name__)

# A server that started the process and died, or is slow.
FIRST_SECONDS = 60.0
# The same where the engine has failed already.
FAILED_SECONDS = 5.0

Describe = Callable[[TextEngine], dict[str, Any]]
MakeEngine = Callable[[EngineConfig, Callable[[EngineStatus], None]], TextEngine]


@dataclass(frozen=True)
class Served:
    """An engine and what is said about it: its key, and how a client makes its tokenizer."""

    key: str
    config: EngineConfig
    make: MakeEngine
    describe: Describe


class EngineService:
    """Thread-safe. The engine is made at once; `start` lets it load."""

    def __init__(self, served: Served, first_seconds: float = FIRST_SECONDS) -> None:
        """``first_seconds``: how long the first client may take to come, whatever it wants later."""
        self._served = served
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._clients: dict[int, _Client] = {}
        self._numbers = 0
        self._welcomed = False  # anybody so far
        self._over = False  # nobody is served any more
        self._idle_seconds = first_seconds
        self._idle_since = time.monotonic()
        self._state = State(EngineStatus(EngineState.STARTING), served.config.context)
        self._engine = served.make(served.config, self._report)

    def start(self) -> None:
        """Begin to load."""
        self._engine.start()

    @property
    def failed(self) -> bool:
        """The engine cannot run: nobody new should come here."""
        return self._state.status.state is EngineState.FAILED

    @property
    def clients(self) -> int:
        """Attached now."""
        with self._lock:
            return len(self._clients)

    def wait_until_idle(self) -> None:
        """Return when nobody has been attached for the agreed time, or has heard that the engine failed."""
        with self._changed:
            while not (self.failed and self._welcomed):
                if self._clients:
                    self._changed.wait()
                    continue
                left = self._idle_since + self._idle_seconds - time.monotonic()
                if left <= 0:
                    self._over = True
                    return
                self._changed.wait(left)

    def serve(self, link: Link) -> None:
        """Take a new connection; returns at once."""
        with self._lock:
            self._numbers += 1
            client = _Client(self, self._engine, self._numbers, link)
        try:
            client.channel.start()
        except RuntimeError:  # no more threads
            link.close()
            raise

    def hang_up(self, seconds: float) -> None:
        """Send what waits to be sent, and end all connections; wait for that, but not for long."""
        with self._lock:
            channels = [client.channel for client in self._clients.values()]
        end = time.monotonic() + seconds
        for channel in channels:
            channel.close()
        for channel in channels:
            channel.ended.wait(max(0.0, end - time.monotonic()))

    # -- for the clients

    def welcome(self, client: _Client, hello: Hello) -> bool:
        """Answer a greeting; whether the client may stay."""
        if hello.key != self._served.key:
            _log.error("a client wants another engine")
            return False
        with self._changed:
            if self._over:
                return False  # what it asked would be lost; it starts another process
            attached = len(self._clients) + (not hello.visit)
            model, state = self._served.config.model, self._state.status.state.value
            requests = sum(other.requests for other in self._clients.values())
            client.channel.send(Welcome(os.getpid(), attached, model, state, requests))
            if hello.visit:
                return False
            self._clients[client.number] = client
            client.channel.send(self._state)
            self._welcomed = True
            self._changed.notify_all()
        _log.info("client %d attached: process %d", client.number, hello.pid)
        return True

    def left(self, client: _Client, idle_seconds: float) -> None:
        """A client is gone."""
        with self._changed:
            if self._clients.pop(client.number, None) is None:
                return
            if not self._clients:
                self._idle_since, self._idle_seconds = time.monotonic(), idle_seconds
            self._changed.notify_all()
        _log.info("client %d left", client.number)

    def is_last(self, client: _Client) -> bool:
        """Whether a client is the only one."""
        with self._lock:
            return list(self._clients) == [client.number]

    def _report(self, status: EngineStatus) -> None:
        with self._changed:
            codec, context = self._state.codec, self._state.context
            if status.state is EngineState.READY:
                try:
                    codec, context = self._served.describe(self._engine), self._engine.context
                except Exception as error:
                    _log.exception("the tokenizer cannot be described")
                    status = EngineStatus(EngineState.FAILED, f"The tokenizer cannot be shared: {error}.")
            self._state = State(status, context, codec)
            if self.failed and not self._welcomed:
                self._idle_since, self._idle_seconds = time.monotonic(), FAILED_SECONDS
            for client in self._clients.values():
                client.channel.send(self._state)
            self._changed.notify_all()


class _Client:
    """One connection. Messages are handled in its reading thread, one after the other."""

    def __init__(self, service: EngineService, engine: TextEngine, number: int, link: Link) -> None:
        self.number = number
        self.channel = Channel(link, self._handle, self._ended, f"client-{number}")
        self._service = service
        self._engine = engine
        self._hello: Hello | None = None
        self._generations: dict[int, Generation] = {}
        self._documents: set[str] = set()
        self._idle_seconds = 0.0

    @property
    def requests(self) -> int:
        """That have no answer yet."""
        return len(self._generations)

    def _handle(self, message: Message) -> None:
        if self._hello is None:
            if not isinstance(message, Hello) or not self._service.welcome(self, message):
                self.channel.close()
                return
            self._hello, self._idle_seconds = message, message.idle_seconds
        elif isinstance(message, Submit):
            self._submit(message.id, message.request)
        elif isinstance(message, Cancel):
            if (generation := self._generations.get(message.id)) is not None:
                generation.cancel()
        elif isinstance(message, Learn):
            self._engine.learn(self._named(message.document), message.text)
        elif isinstance(message, Forget):
            self._forget(message.document)
        elif isinstance(message, Ping):
            self.channel.send(Pong())
        elif isinstance(message, Leave):
            self._leave(message)

    def _submit(self, id: int, request: GenerationRequest) -> None:
        document = self._named(request.document)
        try:
            generation = self._engine.submit(replace(request, document=document, client=str(self.number)))
        except DraftlineError as error:
            self.channel.send(Refused(id, error.code, error.message, error.next_step))
            return
        self._generations[id] = generation
        generation.listen(lambda chunk: self._said(id, chunk))
        generation.future.add_done_callback(lambda future: self._done(id, future))

    def _said(self, id: int, chunk: Chunk) -> None:
        self.channel.send(Said(id, chunk.text, chunk.token_ids))

    def _done(self, id: int, future: Future[GenerationResult]) -> None:
        self._generations.pop(id, None)
        try:
            result = future.result()
        except DraftlineError as error:
            self.channel.send(Refused(id, error.code, error.message, error.next_step))
        except Exception as error:
            _log.error("a request failed", exc_info=error)
            self.channel.send(Refused(id, "error", f"{type(error).__name__}: {error}"))
        else:
            self.channel.send(Done(id, result))

    def _forget(self, document: str) -> None:
        if document in self._documents:
            self._documents.discard(document)
            self._engine.close_document(f"{self.number}:{document}")

    def _leave(self, message: Leave) -> None:
        if message.end and self._service.is_last(self):
            # The process ends now, and with it the connection: whoever waits for that has the memory back.
            self._idle_seconds = 0.0
            self._let_go()
        else:
            self.channel.close()

    def _ended(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        # Only what is the client's own: the others go on.
        for generation in list(self._generations.values()):
            generation.cancel()
        for document in list(self._documents):
            self._forget(document)
        self._service.left(self, self._idle_seconds)

    def _named(self, document: str) -> str:
        if not document:
            return ""
        self._documents.add(document)
        return f"{self.number}:{document}"
