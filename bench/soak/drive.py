"""Sends the requests of an editor to an engine, and looks at the process between them."""

from __future__ import annotations

import gc
import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import psutil

from bench.machine import memory_of
from bench.records import Sample
from bench.soak.editor import Step
from inference.api import FinishReason, GenerationRequest, GenerationResult
from inference.engine import Engine
from inference.errors import QueueFull
from inference.pending import PendingGeneration

_SECONDS = 120.0  # for one answer
_PATIENCE_S = 0.005  # from a request to its cancelling, every other time
_MOST_WAITING = 8
# Caches are full when so many requests one after the other took less than this.
_STEADY, _GROWING = 3, 2_000_000


@dataclass
class _Tally:
    """Requests by what became of them, and milliseconds of those that were awaited."""

    outcomes: Counter[str] = field(default_factory=Counter)
    ms: list[float] = field(default_factory=list)
    most_waiting: int = 0
    error: str = ""


class Soak:
    """One engine under load. Used from one thread."""

    def __init__(self, engine: Engine, documents: Callable[[], int], allowance: int) -> None:
        """``engine`` is ready; ``documents`` tells how many are open in the editor; ``allowance``: bytes that
        the process may take beside packed weights and the KV budget."""
        self._engine, self._documents = engine, documents
        self._waiting: list[PendingGeneration] = []
        self._tally = _Tally()
        self._submitted = 0
        self._began = time.monotonic()
        runtime = engine.runtime
        self._promised = (
            runtime.decoder.weights.private_bytes + runtime.options.kv_budget_mb * 2**20 + allowance
        )

    def warm_up(self, requests: Iterable[GenerationRequest]) -> None:
        """Answer these, not counted."""
        for request in requests:
            self._engine.submit(request).future.result(_SECONDS)
            self._engine.close_document(request.document)

    def fill(self, requests: Iterable[GenerationRequest]) -> None:
        """Answer these, not counted, until they take no more memory: caches have their full size then."""
        documents, most, steady = [], 0, 0
        for request in requests:
            self._engine.submit(request).future.result(_SECONDS)
            documents.append(request.document)
            private = memory_of([os.getpid()])[0] or 0
            steady = 0 if private > most + _GROWING else steady + 1
            most = max(most, private)
            if steady == _STEADY:
                break
        for document in documents:
            self._engine.close_document(document)

    def run(self, steps: Iterable[Step], every: int, seconds: float | None = None) -> Iterator[Sample | None]:
        """All steps; a sample after every so many and one at the end, else None after each step.

        Args:
            seconds: no step is begun later.
        """
        self._began = time.monotonic()
        sampled = 0
        for step in steps:
            if seconds is not None and time.monotonic() - self._began > seconds:
                break
            self._take(step)
            if self._submitted % every == 0:
                sampled = self._submitted
                yield self._sample()
            else:
                yield None
        if sampled < self._submitted:
            yield self._sample()

    def _take(self, step: Step) -> None:
        for document in step.closes:
            self._engine.close_document(document)
        self._submitted += 1
        try:
            pending = self._engine.submit(step.request)
        except QueueFull:
            self._tally.outcomes["refused"] += 1
            self._settle()
            return
        self._waiting.append(pending)
        self._tally.most_waiting = max(
            self._tally.most_waiting, sum(not each.future.done() for each in self._waiting)
        )
        if step.then == "cancel":
            if self._submitted % 2:
                time.sleep(_PATIENCE_S)
            pending.cancel()
        if step.then == "wait" or len(self._waiting) >= _MOST_WAITING:
            self._settle()

    def _settle(self) -> None:
        """Wait for all that was asked."""
        waiting, self._waiting = self._waiting, []
        for pending in waiting:
            try:
                result: GenerationResult = pending.future.result(_SECONDS)
            except Exception as error:  # a fault of the engine is what a soak looks for
                self._tally.outcomes["failed"] += 1
                self._tally.error = self._tally.error or f"{type(error).__name__}: {error}"
                continue
            self._tally.outcomes[_outcome(result)] += 1
            if _outcome(result) == "answered":
                self._tally.ms.append(result.timings.total)

    def _sample(self) -> Sample:
        self._settle()
        # What only waits to be collected is no leak.
        gc.collect()
        process = psutil.Process()
        private, mapped = memory_of([os.getpid()])
        tally = self._tally
        sample = Sample(
            requests=self._submitted,
            seconds=time.monotonic() - self._began,
            answered=tally.outcomes["answered"],
            cancelled=tally.outcomes["cancelled"],
            superseded=tally.outcomes["superseded"],
            refused=tally.outcomes["refused"],
            failed=tally.outcomes["failed"],
            error=tally.error,
            ms=statistics.median(tally.ms) if tally.ms else None,
            waiting=tally.most_waiting,
            documents=self._documents(),
            private_bytes=private,
            mapped_bytes=mapped,
            promised_bytes=self._promised,
            threads=process.num_threads(),
            python_threads=threading.active_count(),
            files=process.num_fds() if hasattr(process, "num_fds") else process.num_handles(),
            objects=len(gc.get_objects()),
        )
        tally.ms.clear()
        tally.most_waiting = 0
        return sample


def _outcome(result: GenerationResult) -> str:
    if result.finish_reason is FinishReason.CANCELLED:
        return "cancelled"
    return "superseded" if result.finish_reason is FinishReason.SUPERSEDED else "answered"
