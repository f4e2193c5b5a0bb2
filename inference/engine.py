"""One model, one worker thread, a bounded queue. Importing this does not import torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from inference.api import (
    EngineConfig,
    EngineState,
    EngineStatus,
    FinishReason,
    GenerationRequest,
    GenerationResult,
    Timings,
)
from inference.checks import check_config, check_request
from inference.drafting.lessons import Lessons
from inference.errors import DraftlineError, EngineStopped, QueueFull
from inference.fair_queue import FairQueue
from inference.pending import PendingGeneration

if TYPE_CHECKING:
    from inference.runtime import Runtime
    from inference.tokenizer import Tokenizer


class Engine:
    """Owns the model; implements `api.TextEngine`. All methods may be called from any thread."""

    def __init__(self, config: EngineConfig, on_status: Callable[[EngineStatus], None] | None = None) -> None:
        check_config(config)
        self.config = config
        self._on_status = on_status
        self._status = EngineStatus(EngineState.STARTING, "Not started.")
        self._waiting = FairQueue()
        self._running: PendingGeneration | None = None
        self._closed_documents: list[str] = []
        self._lessons = Lessons()
        self._changed = threading.Condition()
        self._stopping = False
        self._runtime: Runtime | None = None
        self._settled = threading.Event()  # READY, FAILED or STOPPED
        self._thread = threading.Thread(target=self._work, name="draftline-model", daemon=True)

    @property
    def status(self) -> EngineStatus:
        """The last status."""
        return self._status

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the loaded model.

        Raises:
            EngineStopped: the model is not ready.
        """
        return self._ready_runtime().tokenizer

    @property
    def context(self) -> int:
        """Tokens of prompt and answer together; what was asked for, or the model's own limit."""
        return self._runtime.context if self._runtime is not None else self.config.context

    @property
    def runtime(self) -> Runtime:
        """The loaded model, for reports and tests; generate through `submit` only.

        Raises:
            EngineStopped: the model is not ready.
        """
        return self._ready_runtime()

    def start(self) -> None:
        """Begin loading in the worker thread; returns at once."""
        self._thread.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Block until requests can be submitted.

        Raises:
            DraftlineError: loading failed.
            TimeoutError
        """
        if not self._settled.wait(timeout):
            raise TimeoutError("The model did not load in time.")
        if self._status.state is not EngineState.READY:
            raise self._stopped()

    def submit(self, request: GenerationRequest) -> PendingGeneration:
        """Queue a request; older ones of the same document end as SUPERSEDED at once.

        Raises:
            QueueFull, PromptTooLong, InvalidRequest, EngineStopped
        """
        runtime = self._ready_runtime()
        check_request(request, runtime)
        pending = PendingGeneration(request, self._withdraw)
        superseded: list[PendingGeneration] = []
        with self._changed:
            if self._stopping:
                raise self._stopped()
            if request.document:
                superseded = [p for p in self._waiting if p.request.document == request.document]
                for old in superseded:
                    self._waiting.remove(old)
                if self._running is not None and self._running.request.document == request.document:
                    superseded.append(self._running)
            if (count := self._waiting.waiting_for(request.client)) >= self.config.queue_limit:
                raise QueueFull(f"{count} requests are waiting already.", "Ask again when some are answered.")
            running = self._running
            if running is not None and running.request.background and not request.background:
                running.interrupt(FinishReason.CANCELLED)  # nobody waits for it
            self._waiting.append(pending)
            self._changed.notify()
        for old in superseded:
            old.interrupt(FinishReason.SUPERSEDED)
            old.resolve_unstarted(FinishReason.SUPERSEDED)
        return pending

    def learn(self, document: str, text: str) -> None:
        """Let guesses draw on a document's text, also in other documents, until it is closed or learned anew.

        Returns at once; the text is read when there is nothing else to do. It decides about speed only.
        """
        lost = self._settled.is_set() and self._status.state is not EngineState.READY
        if not document or lost or self.config.draft != "auto":
            return
        with self._changed:
            self._lessons.put(document, text)
            self._changed.notify()

    def close_document(self, document: str) -> None:
        """Forget what the caches hold of a document."""
        with self._changed:
            self._lessons.drop(document)
            # Their text must not be read once it is forgotten.
            late = [pending for pending in self._waiting if document and pending.request.document == document]
            for pending in late:
                self._waiting.remove(pending)
            self._closed_documents.append(document)
            if document and self._running is not None and self._running.request.document == document:
                self._running.interrupt(FinishReason.CANCELLED)
            self._changed.notify()
        for pending in late:
            pending.resolve_unstarted(FinishReason.CANCELLED)

    def retire(self) -> None:
        """`close`: what is inside this process goes with it."""
        self.close()

    def close(self) -> None:
        """Stop the worker; waiting and running requests end as CANCELLED. Idempotent."""
        with self._changed:
            self._stopping = True
            waiting, running = list(self._waiting), self._running
            self._waiting.clear()
            self._changed.notify_all()
        for pending in waiting:
            pending.resolve_unstarted(FinishReason.CANCELLED)
        if running is not None:
            running.interrupt(FinishReason.CANCELLED)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        self._runtime = None
        self._set_status(EngineStatus(EngineState.STOPPED, "Stopped."))
        self._settled.set()

    # -- worker thread

    def _work(self) -> None:
        try:
            self._load()
        except Exception as error:  # whatever it is, the user must see it
            self._fail(error)
            return
        if self._stopping:
            self._runtime = None  # `close` did not wait for it
            return
        self._set_status(EngineStatus(EngineState.READY, self._ready_words(), 1.0))
        self._settled.set()
        try:
            while (pending := self._next()) is not None:
                self._run(pending)
                self._running = None
        except Exception as error:  # without this thread nobody would ever get an answer
            self._break(error)

    def _load(self) -> None:
        # torch is imported here, in the thread that will use it, and never by the event loop.
        from inference.openmp import import_torch

        import_torch()
        from inference.runtime import load_runtime

        self._progress("Loading the model.", 0.0)  # importing torch may have outlasted `close`
        self._runtime = load_runtime(self.config, self._progress)

    def _ready_words(self) -> str:
        draft = self.config.draft_model
        return "Ready." if draft is None else f"Ready; {draft} drafts for {self.config.model}."

    def _progress(self, message: str, fraction: float | None) -> None:
        if self._stopping:
            raise EngineStopped("The engine was closed while loading.")
        self._set_status(EngineStatus(EngineState.LOADING, message, fraction))

    def _fail(self, error: Exception, what: str = "Loading failed") -> None:
        if self._stopping:
            return  # `close` says what the state is
        if not isinstance(error, DraftlineError):
            import traceback

            traceback.print_exc()
            error = DraftlineError(
                f"{what}: {type(error).__name__}: {error}",
                "See the log; `draftline doctor` may know.",
            )
        self._set_status(
            EngineStatus(EngineState.FAILED, error.message, code=error.code, next_step=error.next_step)
        )
        self._settled.set()

    def _break(self, error: Exception) -> None:
        """The worker ends, and all that wait for it get an error."""
        self._fail(error, "The engine failed")
        with self._changed:
            self._stopping = True
            left = list(self._waiting)
            self._waiting.clear()
        for pending in [self._running, *left]:
            if pending is not None:
                pending.resolve(self._stopped())

    def _next(self) -> PendingGeneration | None:
        while True:
            with self._changed:
                if self._stopping:
                    return None
                runtime = self._runtime
                assert runtime is not None
                for document in self._closed_documents:
                    runtime.close_document(document)
                self._closed_documents.clear()
                if self._waiting:
                    self._running = self._waiting.take()
                    return self._running
                if not self._lessons:
                    self._changed.wait()
                    continue
                piece = self._lessons.take()
            # Without the lock: whoever submits a request must not wait for the tokenizer.
            try:
                runtime.study(piece)
            except Exception:  # a text that has no tokens is no reason to stop answering
                with self._changed:
                    self._lessons.drop(piece.document)

    def _run(self, pending: PendingGeneration) -> None:
        runtime = self._runtime
        assert runtime is not None
        started = time.perf_counter()
        if (reason := pending.interrupted()) is not None:
            pending.resolve_unstarted(reason)
            return
        try:
            outcome = runtime.run(pending.request, pending.emit, pending.interrupted)
        except Exception as error:
            pending.resolve(error)
            return
        ended = time.perf_counter()
        since = pending.submitted
        first = outcome.first_token or ended
        pending.resolve(
            GenerationResult(
                text=outcome.text,
                token_ids=outcome.token_ids,
                finish_reason=outcome.reason,
                prompt_tokens=len(pending.request.prompt),
                cached_tokens=outcome.cached_tokens,
                drafted=outcome.drafted,
                accepted=outcome.accepted,
                forwards=outcome.forwards,
                timings=Timings(
                    queue=(started - since) * 1000,
                    prompt=(outcome.prompt_done - started) * 1000,
                    first=(first - since) * 1000,
                    total=(ended - since) * 1000,
                ),
                logits_sha256=outcome.logits_sha256,
            )
        )

    # -- helpers

    def _withdraw(self, pending: PendingGeneration) -> None:
        with self._changed:
            if pending not in self._waiting:
                return
            self._waiting.remove(pending)
        pending.resolve_unstarted(FinishReason.CANCELLED)

    def _ready_runtime(self) -> Runtime:
        runtime = self._runtime
        if runtime is None or self._status.state is not EngineState.READY:
            raise self._stopped()
        return runtime

    def _stopped(self) -> DraftlineError:
        status = self._status
        error: DraftlineError = EngineStopped(
            status.message or "The engine is not running.", status.next_step
        )
        if status.code:
            error.code = status.code
        return error

    def _set_status(self, status: EngineStatus) -> None:
        self._status = status
        if self._on_status is not None:
            self._on_status(status)
