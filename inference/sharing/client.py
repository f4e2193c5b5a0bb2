"""An engine in a process of its own, as a server sees it."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from inference.api import (
    Chunk,
    EngineConfig,
    EngineState,
    EngineStatus,
    FinishReason,
    GenerationRequest,
    TextCodec,
)
from inference.checks import check_config
from inference.errors import DraftlineError, EngineLost, EngineStopped, error_of
from inference.pending import PendingGeneration
from inference.sharing import codec as codecs
from inference.sharing import start
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
    Refused,
    Said,
    State,
    Submit,
)
from inference.sharing.place import Place
from inference.sharing.start import PATIENCE, attach, dismiss

_log = logging.getLogger(__name__)

PING_SECONDS = 5.0
# Without a word for so long the process counts as hung. Loading a library may keep it busy for seconds.
HUNG_SECONDS = 30.0
# Greetings that a process may leave without an answer after it was hung.
HUNG_PATIENCE = 2
# A process that lived for so long is no failure, if it was ready; loading may take as long and fail.
LONG_SECONDS = 60.0
# Between the ends of a process that does not get anywhere; one that answered is replaced at once.
BACK_OFF_SECONDS = (0.25, 1.0, 4.0, 16.0)
_RETIRE_SECONDS = 5.0
_DISMISS_SECONDS = 20.0

OpenCodec = Callable[[dict[str, Any]], TextCodec]


class SharedEngine:
    """Implements `api.TextEngine`. All methods may be called from any thread, and none waits for the process.

    When the process ends, requests in flight fail with `EngineLost`, and another one is found or started.
    """

    def __init__(
        self,
        config: EngineConfig,
        place: Place,
        on_status: Callable[[EngineStatus], None] | None = None,
        *,
        idle_seconds: float = 60.0,
        codec: OpenCodec | None = None,
        back_off: tuple[float, ...] = BACK_OFF_SECONDS,
    ) -> None:
        """No process is asked yet.

        Raises:
            InvalidRequest: no engine could run the configuration.
        """
        check_config(config)
        self.config = config
        self.process_id: int | None = None
        self._place = place
        self._on_status = on_status
        self._open_codec = codec or codecs.open_codec
        self._back_off = back_off
        self._hello = Hello(place.key, os.getpid(), idle_seconds)
        self._status = EngineStatus(EngineState.STARTING, "Not started.")
        self._context = config.context
        self._codec: tuple[dict[str, Any], TextCodec] | None = None
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._pending: dict[int, PendingGeneration] = {}
        self._channel: Channel | None = None
        self._closed = threading.Event()
        self._useful = False  # the present process has answered something
        self._ready = False  # its model was loaded
        self._hung = False  # the last one did not answer any more
        self._started = False  # a process, to which this is not attached yet
        self._retired = False
        self._thread = threading.Thread(target=self._keep_attached, name="engine-attach", daemon=True)

    @property
    def status(self) -> EngineStatus:
        """The last status."""
        return self._status

    @property
    def tokenizer(self) -> TextCodec:
        """Of the loaded model.

        Raises:
            EngineStopped: the model is not ready.
        """
        if self._codec is None:
            raise EngineStopped("The model is not ready.")
        return self._codec[1]

    @property
    def context(self) -> int:
        """Tokens of prompt and answer together."""
        return self._context

    def start(self) -> None:
        """Attach in the background; returns at once."""
        self._thread.start()

    def submit(self, request: GenerationRequest) -> PendingGeneration:
        """Send a request. What the engine has against it is an exception of the future.

        Raises:
            EngineStopped: the engine is not ready.
        """
        with self._lock:
            channel = self._channel
            if channel is None or self._status.state is not EngineState.READY:
                raise EngineStopped(self._status.message or "The engine is not ready.")
            id = next(self._ids)
            pending = self._pending[id] = PendingGeneration(request, lambda _: channel.send(Cancel(id)))
            channel.send(Submit(id, request))
        return pending

    def learn(self, document: str, text: str) -> None:
        """Let guesses draw on a document's text; whoever starts the server's part again sends it anew."""
        if document and self._status.state is EngineState.READY:
            self._send(Learn(document, text))

    def close_document(self, document: str) -> None:
        """Forget what is kept of a document."""
        self._send(Forget(document))

    def close(self) -> None:
        """Detach; the process stays for a while. Requests end as CANCELLED. Idempotent."""
        self._detach(end=False)

    def retire(self) -> None:
        """`close`, and end the process if nobody else is attached: another engine needs its memory.

        Waits for that, but not for long.
        """
        attached = self._channel is not None
        self._retired = True
        self._detach(end=True)
        if not attached and self._thread.is_alive():  # it may have started a process
            self._thread.join(2 * _RETIRE_SECONDS)

    # -- the thread that keeps it attached

    def _keep_attached(self) -> None:
        misses = 0
        try:
            while not self._closed.is_set():
                patience = HUNG_PATIENCE if self._hung else PATIENCE
                link, welcome = attach(
                    self._place, self.config, self._hello, self._closed, self._spawn, patience
                )
                _log.info("attached to the engine process %d with %d in all", welcome.pid, welcome.clients)
                self.process_id = welcome.pid
                self._useful = self._ready = self._hung = False
                began = time.monotonic()
                self._session(link)
                self.process_id = None
                if self._closed.is_set() or self._status.state is EngineState.FAILED:
                    break
                self._lose()
                long = time.monotonic() - began > LONG_SECONDS
                if self._useful or (self._ready and long):
                    misses = 0
                    continue
                if misses >= len(self._back_off):
                    raise EngineLost("The engine process ends again and again.", f"See {self._place.log}.")
                self._closed.wait(self._back_off[misses])
                misses += 1
        except DraftlineError as error:
            self._fail(error)
        except Exception as error:
            _log.exception("the engine process cannot be reached")
            self._fail(EngineLost(f"The engine process cannot be reached: {error}.", "See the log."))
        if self._started and self._retired:
            dismiss(self._place, self._hello, _DISMISS_SECONDS)

    def _spawn(self, place: Place, config: EngineConfig) -> subprocess.Popen[bytes]:
        process = start.start_process(place, config)
        self._started = True
        return process

    def _session(self, link: Link) -> None:
        """Serve one connection until it ends, or is silent for too long."""
        ended = threading.Event()
        channel = Channel(link, self._handle, ended.set, "engine")
        with self._lock:
            if self._closed.is_set():
                link.close()
                return
            self._channel, self._started = channel, False
        channel.start()
        # Not by the clock: it goes on while this process is stopped, as when an editor is suspended.
        unanswered = 0
        while not ended.wait(PING_SECONDS):
            unanswered = 0 if channel.heard else unanswered + 1
            channel.heard = False
            if unanswered * PING_SECONDS > HUNG_SECONDS:
                _log.warning("the engine process has not answered %d times", unanswered)
                self._hung = True
                channel.close(flush=False)
                break
            channel.send(Ping())

    def _lose(self) -> None:
        _log.warning("the engine process is gone")
        with self._lock:
            self._channel = None
            lost, self._pending = self._pending, {}
        # Before the requests end: who asks again must not be told that all is well.
        self._set_status(
            EngineStatus(EngineState.LOADING, "The engine process ended; another one is started.")
        )
        for pending in lost.values():
            pending.resolve(EngineLost("The engine process ended.", "Ask again when the model is ready."))

    def _fail(self, error: DraftlineError) -> None:
        if not self._closed.is_set():
            self._set_status(
                EngineStatus(EngineState.FAILED, error.message, code=error.code, next_step=error.next_step)
            )

    def _handle(self, message: Message) -> None:
        if isinstance(message, State):
            self._state(message)
        elif isinstance(message, Said):
            if (pending := self._pending.get(message.id)) is not None:
                self._useful = True
                pending.emit(Chunk(message.text, message.token_ids))
        elif isinstance(message, Done):
            if (pending := self._pending.pop(message.id, None)) is not None:
                self._useful = True
                pending.resolve(message.result)
        elif isinstance(message, Refused) and (pending := self._pending.pop(message.id, None)) is not None:
            pending.resolve(error_of(message.code, message.message, message.next_step))

    def _state(self, state: State) -> None:
        self._context = state.context
        status = state.status
        if state.codec is not None and (self._codec is None or self._codec[0] != state.codec):
            try:
                self._codec = state.codec, self._open_codec(state.codec)
            except DraftlineError as error:
                status = EngineStatus(EngineState.FAILED, error.message, None, error.code, error.next_step)
        self._ready = self._ready or status.state is EngineState.READY
        self._set_status(status)

    # -- helpers

    def _detach(self, end: bool) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            channel, self._channel = self._channel, None
            waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            pending.interrupt(FinishReason.CANCELLED)
            pending.resolve_unstarted(FinishReason.CANCELLED)
        if channel is not None:
            channel.send(Leave(end))
            if not end or not channel.ended.wait(_RETIRE_SECONDS):
                channel.close()
        self._set_status(EngineStatus(EngineState.STOPPED, "Stopped."))

    def _send(self, message: Message) -> None:
        if (channel := self._channel) is not None:
            channel.send(message)

    def _set_status(self, status: EngineStatus) -> None:
        if self._closed.is_set() and status.state is not EngineState.STOPPED:
            return
        self._status = status
        if self._on_status is not None:
            self._on_status(status)
