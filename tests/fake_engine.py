"""An engine without a model: it says what it is told to, token by token, at a given pace."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from inference.api import (
    Chunk,
    EngineConfig,
    EngineState,
    EngineStatus,
    FinishReason,
    GenerationRequest,
    GenerationResult,
    Timings,
)
from inference.errors import EngineStopped, ModelNotFetched

QWEN_SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)

_FIRST_SPECIAL = 0x110000


class FakeCodec:
    """One token for each character; special tokens behind the last code point."""

    def __init__(self, specials: tuple[str, ...] = QWEN_SPECIALS) -> None:
        self._specials = {spelling: _FIRST_SPECIAL + at for at, spelling in enumerate(specials)}

    @property
    def vocab_size(self) -> int:
        return _FIRST_SPECIAL + len(self._specials)

    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(chr(id) for id in ids if id < _FIRST_SPECIAL)

    def healing_start(self, line: str) -> int:
        return len(line)

    def special(self, spelling: str) -> int | None:
        return self._specials.get(spelling)

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset(self._specials.values())

    @property
    def end_ids(self) -> frozenset[int]:
        return frozenset(list(self._specials.values())[:1])

    def show(self, ids: tuple[int, ...]) -> str:
        """The prompt with its control tokens spelled out."""
        names = {id: spelling for spelling, id in self._specials.items()}
        return "".join(names.get(id) or chr(id) for id in ids)


class FakeGeneration:
    def __init__(self, request: GenerationRequest) -> None:
        self.request = request
        self.stop: FinishReason | None = None
        self.steps = 0
        self._future: Future[GenerationResult] = Future()
        self._lock = threading.Lock()
        self._said: list[Chunk] = []
        self._listener: Callable[[Chunk], None] | None = None

    @property
    def future(self) -> Future[GenerationResult]:
        return self._future

    def cancel(self) -> None:
        self.stop = self.stop or FinishReason.CANCELLED

    def chunks(self) -> Iterator[Chunk]:
        yield Chunk(self._future.result().text, ())

    def listen(self, callback: Callable[[Chunk], None]) -> None:
        with self._lock:
            self._listener = callback
            for chunk in self._said:
                callback(chunk)
            self._said.clear()

    def say(self, text: str) -> None:
        """Hand out text that became final."""
        with self._lock:
            if self._listener is None:
                self._said.append(Chunk(text, ()))
            else:
                self._listener(Chunk(text, ()))


class Pace:
    """Lets an engine write so many characters and no more, until it is allowed to go on."""

    def __init__(self) -> None:
        self._free = 0
        self._changed = threading.Condition()

    def allow(self, characters: int) -> None:
        """Let it write some more."""
        with self._changed:
            self._free += characters
            self._changed.notify_all()

    def wait(self, ended: Callable[[], bool]) -> None:
        """Take the permission for one character, or return because the answer has ``ended``."""
        with self._changed:
            while not self._free and not ended():
                self._changed.wait(0.005)
            if self._free:
                self._free -= 1


class FakeEngine:
    """Answers every request with ``answer`` (a text, or a function of the prompt as text).

    With a ``pace`` it writes what the test allows it to write; otherwise a character each ``step_seconds``.
    It loads for ``load_seconds``, and until there is a file ``load_until``.
    """

    def __init__(
        self,
        config: EngineConfig | None = None,
        on_status: Callable[[EngineStatus], None] | None = None,
        *,
        answer: str | Callable[[str], str] = "answer",
        step_seconds: float = 0.0,
        load_seconds: float = 0.0,
        codec: FakeCodec | None = None,
        context: int = 4096,
        fail: bool = False,
        pace: Pace | None = None,
        load_until: Path | None = None,
    ) -> None:
        self.config = config or EngineConfig()
        self.codec = codec or FakeCodec()
        self.requests: list[GenerationRequest] = []
        self.generations: list[FakeGeneration] = []
        self.learned: dict[str, str] = {}
        self._answer = answer
        self._step_seconds = step_seconds
        self._load_seconds = load_seconds
        self._context = context
        self._fail = fail
        self._pace = pace
        self._load_until = load_until
        self._on_status = on_status or (lambda status: None)
        self._status = EngineStatus(EngineState.STARTING)
        self._closed = threading.Event()

    @property
    def status(self) -> EngineStatus:
        return self._status

    @property
    def tokenizer(self) -> FakeCodec:
        if self._status.state is not EngineState.READY:
            raise EngineStopped("not ready")
        return self.codec

    @property
    def context(self) -> int:
        return self._context

    def start(self) -> None:
        if self._load_seconds or self._load_until:
            threading.Thread(target=self._load, daemon=True).start()
        else:
            self._load()

    def submit(self, request: GenerationRequest) -> FakeGeneration:
        for running in self.generations:
            if running.request.document == request.document and not running.future.done():
                running.stop = running.stop or FinishReason.SUPERSEDED
        generation = FakeGeneration(request)
        self.requests.append(request)
        self.generations.append(generation)
        threading.Thread(target=self._decode, args=(generation,), daemon=True).start()
        return generation

    def learn(self, document: str, text: str) -> None:
        self.learned[document] = text

    def close_document(self, document: str) -> None:
        self.learned.pop(document, None)

    def retire(self) -> None:
        self.close()

    def close(self) -> None:
        self._closed.set()
        self._report(EngineStatus(EngineState.STOPPED))

    def _load(self) -> None:
        steps = 4
        for step in range(steps if self._load_seconds else 0):
            self._report(EngineStatus(EngineState.LOADING, "Reading the weights", step / steps))
            time.sleep(self._load_seconds / steps)
        if self._load_until is not None:
            self._report(EngineStatus(EngineState.LOADING, "Reading the weights"))
            while not self._load_until.exists() and not self._closed.is_set():
                time.sleep(0.02)
        if self._fail:
            error = ModelNotFetched(
                f"{self.config.model} is not on this disk.", "Run `draftline model fetch`."
            )
            self._report(EngineStatus(EngineState.FAILED, error.message, None, error.code, error.next_step))
        else:
            self._report(EngineStatus(EngineState.READY, "Ready"))

    def _report(self, status: EngineStatus) -> None:
        if not self._closed.is_set() or status.state is EngineState.STOPPED:
            self._status = status
            self._on_status(status)

    def _decode(self, generation: FakeGeneration) -> None:
        request = generation.request
        answer = (
            self._answer if isinstance(self._answer, str) else self._answer(self.codec.show(request.prompt))
        )
        text, reason = "", FinishReason.STOP_TOKEN
        for char in answer:
            if self._closed.is_set():
                generation.cancel()
            if generation.stop is not None:
                reason = generation.stop
                break
            if char == "\n" and request.stops.single_line:
                reason = FinishReason.LINES
                break
            if len(text) >= request.max_new_tokens:
                reason = FinishReason.LENGTH
                break
            if self._pace is not None:
                self._pace.wait(lambda: generation.stop is not None or self._closed.is_set())
                if generation.stop is not None or self._closed.is_set():
                    generation.cancel()
                    reason = generation.stop or FinishReason.CANCELLED
                    break
            else:
                time.sleep(self._step_seconds)
            generation.steps += 1
            text += char
            generation.say(char)
        ids = tuple(self.codec.encode(text))
        generation.future.set_result(
            GenerationResult(text, ids, reason, len(request.prompt), 0, 0, 0, len(ids), Timings())
        )


def engine_from_environment(
    config: EngineConfig, on_status: Callable[[EngineStatus], None] | None = None
) -> FakeEngine:
    """What tests/e2e/fake_server.py puts in place of the real engine."""
    # A library that prints must not get between the messages.
    print("noise on stdout", flush=True)
    os.write(1, b"noise on file descriptor 1\n")
    load_until = os.environ.get("FAKE_LOAD_UNTIL")
    return FakeEngine(
        config,
        on_status,
        answer=os.environ.get("FAKE_ANSWER", "answer"),
        step_seconds=float(os.environ.get("FAKE_STEP_SECONDS", "0")),
        load_seconds=float(os.environ.get("FAKE_LOAD_SECONDS", "0")),
        fail=os.environ.get("FAKE_FAIL") == "1",
        load_until=Path(load_until) if load_until else None,
    )
