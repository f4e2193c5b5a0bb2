"""A request between its submission and its result, seen from both sides."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from inference.api import Chunk, FinishReason, GenerationRequest, GenerationResult, Timings


class PendingGeneration:
    """A submitted request; implements `api.Generation`."""

    def __init__(self, request: GenerationRequest, on_cancel: Callable[[PendingGeneration], None]) -> None:
        self.request = request
        self.submitted = time.perf_counter()
        self.future: Future[GenerationResult] = Future()
        # A running future cannot be cancelled behind the engine's back; `cancel` is the way.
        self.future.set_running_or_notify_cancel()
        self._lock = threading.Lock()
        self._resolved = False
        self._on_cancel = on_cancel
        self._chunks: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()
        self._listener: Callable[[Chunk], None] | None = None
        self._reason: FinishReason | None = None

    def cancel(self) -> None:
        """Stop at the next forward pass."""
        self.interrupt(FinishReason.CANCELLED)
        self._on_cancel(self)

    def chunks(self) -> Iterator[Chunk]:
        """The stream, ending when the request has ended. For one consumer."""
        while (chunk := self._chunks.get()) is not None:
            yield chunk

    def listen(self, callback: Callable[[Chunk], None]) -> None:
        """Call ``callback`` with each chunk in order, from here and from the worker's thread."""
        with self._lock:
            self._listener = callback
            while not self._chunks.empty():
                if (chunk := self._chunks.get()) is not None:
                    callback(chunk)

    # -- for the engine

    def interrupt(self, reason: FinishReason) -> None:
        """Ask the worker to stop; the first reason stays."""
        if self._reason is None:
            self._reason = reason

    def interrupted(self) -> FinishReason | None:
        """The reason to stop, if there is one."""
        return self._reason

    def emit(self, chunk: Chunk) -> None:
        """Hand a chunk to the consumer."""
        with self._lock:  # so that none overtakes those which `listen` finds
            if self._listener is not None:
                self._listener(chunk)
            else:
                self._chunks.put(chunk)

    def resolve(self, result: GenerationResult | Exception) -> None:
        """End the request; later calls do nothing."""
        with self._lock:
            if self._resolved:
                return
            self._resolved = True
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)
        self._chunks.put(None)

    def resolve_unstarted(self, reason: FinishReason) -> None:
        """End a request the worker never began."""
        waited = (time.perf_counter() - self.submitted) * 1000
        self.resolve(
            GenerationResult(
                "", (), reason, len(self.request.prompt), 0, 0, 0, 0, Timings(queue=waited, total=waited)
            )
        )
