"""The engine's promises about queues, cancelling and streams, on a tiny model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference import openmp
from inference import runtime as runtime_module
from inference.api import (
    Chunk,
    EngineConfig,
    EngineState,
    EngineStatus,
    FinishReason,
    GenerationRequest,
    StopRules,
)
from inference.engine import Engine
from inference.errors import (
    DraftlineError,
    EngineStopped,
    InvalidRequest,
    NotEnoughMemory,
    PromptTooLong,
    QueueFull,
)
from inference.pending import PendingGeneration
from inference.runtime import Runtime

PROMPT = tuple(range(40, 240))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("engine-home")))
        yield


@pytest.fixture(scope="module")
def engine(home: None, looping_model: Path) -> Iterator[Engine]:
    engine = Engine(EngineConfig(model=str(looping_model), context=1024, queue_limit=3))
    engine.start()
    engine.wait_ready(120)
    yield engine
    engine.close()


def _request(document: str = "", **fields: object) -> GenerationRequest:
    return replace(GenerationRequest(PROMPT, document=document, max_new_tokens=40), **fields)  # type: ignore[arg-type]


class _Gate:
    """Holds the worker inside a forward pass until opened."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self._open = threading.Event(), threading.Event()
        decoder = engine.runtime.decoder
        forward = decoder.forward

        def gated(*args: object) -> object:
            self.entered.set()
            assert self._open.wait(30)
            return forward(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(decoder, "forward", gated)

    def open(self) -> None:
        self._open.set()


def test_chunks_joined_are_the_text(engine: Engine) -> None:
    pending = engine.submit(_request(max_new_tokens=90))
    chunks = list(pending.chunks())
    result = pending.future.result(timeout=30)
    assert len(chunks) > 3
    assert "".join(chunk.text for chunk in chunks) == result.text
    assert result.finish_reason is FinishReason.LENGTH
    assert len(result.token_ids) == 90
    assert result.prompt_tokens == len(PROMPT)
    assert 0 < result.timings.first <= result.timings.total


def test_a_listener_hears_everything_in_order_and_before_the_end(engine: Engine) -> None:
    for late in (False, True):
        pending = engine.submit(_request(max_new_tokens=60))
        if late:
            pending.future.result(timeout=30)
        heard: list[tuple[str, bool]] = []
        pending.listen(lambda chunk, to=heard, of=pending: to.append((chunk.text, of.future.done())))  # type: ignore[misc]
        text = pending.future.result(timeout=30).text
        assert len(heard) > 3
        assert "".join(piece for piece, _ in heard) == text
        assert late or not any(done for _, done in heard)


def test_stops_cut_text_and_cache_alike(engine: Engine) -> None:
    whole = engine.submit(_request("a", use_cache=False)).future.result(timeout=30)
    word = whole.text[20:24]
    at = whole.text.index(word)
    for draft in ("none", "ngram"):
        request = _request("a", draft=draft, stops=StopRules(strings=(word,)))
        result = engine.submit(request).future.result(timeout=30)
        assert result.finish_reason is FinishReason.STOP_STRING
        assert result.text == whole.text[:at]
        (slot,) = (slot for slot in engine.runtime.slots.slots if slot.document == "a")
        assert slot.length <= len(PROMPT) + len(result.token_ids)
        again = engine.submit(_request("a")).future.result(timeout=30)
        assert again.token_ids == whole.token_ids
        assert again.cached_tokens == len(PROMPT) - 1


def test_a_stop_token_ends_the_text_before_it(engine: Engine) -> None:
    whole = engine.submit(_request()).future.result(timeout=30)
    stop = whole.token_ids[10]
    request = _request(stops=StopRules(token_ids=frozenset({stop})), draft="ngram")
    result = engine.submit(request).future.result(timeout=30)
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.token_ids == whole.token_ids[: whole.token_ids.index(stop) + 1]
    assert whole.text.startswith(result.text)


def test_the_context_bounds_the_answer(engine: Engine) -> None:
    prompt = tuple(i % 400 for i in range(engine.context - 10))
    request = GenerationRequest(prompt, max_new_tokens=50, draft="ngram")
    result = engine.submit(request).future.result(timeout=30)
    assert result.finish_reason is FinishReason.CONTEXT
    assert len(result.token_ids) == 10


def test_a_deadline_cuts_but_does_not_change(engine: Engine) -> None:
    whole = engine.submit(_request(max_new_tokens=400)).future.result(timeout=30)
    request = _request(max_new_tokens=400, stops=StopRules(deadline_ms=5))
    cut = engine.submit(request).future.result(timeout=30)
    assert cut.finish_reason is FinishReason.DEADLINE
    assert 0 < len(cut.token_ids) < 400
    assert whole.token_ids[: len(cut.token_ids)] == cut.token_ids


def test_the_newest_request_of_a_document_wins(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _Gate(engine, monkeypatch)
    running = engine.submit(_request("a"))
    assert gate.entered.wait(10)
    other = engine.submit(_request("b"))
    second = engine.submit(_request("a"))
    # Superseded at once, while the worker is still inside a forward pass.
    assert running.future.result(timeout=1).finish_reason is FinishReason.SUPERSEDED
    third = engine.submit(_request("a"))
    assert second.future.result(timeout=1).finish_reason is FinishReason.SUPERSEDED
    gate.open()
    assert third.future.result(timeout=30).finish_reason is FinishReason.LENGTH
    assert other.future.result(timeout=30).finish_reason is FinishReason.LENGTH


def test_cancelling_stops_the_decoding(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    forwards = 0
    decoder = engine.runtime.decoder
    forward = decoder.forward

    def counting(*args: object) -> object:
        nonlocal forwards
        forwards += 1
        if forwards == 5:
            pending.cancel()
        return forward(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(decoder, "forward", counting)
    pending = engine.submit(_request("a", max_new_tokens=300, draft="none", use_cache=False))
    result = pending.future.result(timeout=30)
    assert result.finish_reason is FinishReason.CANCELLED
    assert forwards == 5
    monkeypatch.undo()
    # What was decoded before the cancel is true; the next request may build on it.
    assert engine.submit(_request("a")).future.result(timeout=30).cached_tokens > 0


def test_cancelling_a_waiting_request(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _Gate(engine, monkeypatch)
    running = engine.submit(_request("a"))
    assert gate.entered.wait(10)
    waiting = engine.submit(_request("b"))
    waiting.cancel()
    waiting.cancel()
    assert waiting.future.result(timeout=1).finish_reason is FinishReason.CANCELLED
    assert list(waiting.chunks()) == []
    gate.open()
    assert running.future.result(timeout=30).finish_reason is FinishReason.LENGTH


def test_what_nobody_waits_for_makes_way(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _Gate(engine, monkeypatch)
    prefetch = engine.submit(_request("a", background=True))
    assert gate.entered.wait(30)
    also = engine.submit(_request("b", background=True, client="2"))
    asked = engine.submit(_request("c", client="2"))
    gate.open()
    assert prefetch.future.result(timeout=30).finish_reason is FinishReason.CANCELLED
    wanted = asked.future.result(timeout=30)
    later = also.future.result(timeout=30)
    assert (wanted.finish_reason, later.finish_reason) == (FinishReason.LENGTH, FinishReason.LENGTH)
    assert wanted.timings.queue < later.timings.queue
    assert wanted.text == later.text


def test_a_full_queue_of_one_client_is_not_the_other_ones(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _Gate(engine, monkeypatch)
    many = [engine.submit(_request(client="1"))]
    assert gate.entered.wait(30)
    many += [engine.submit(_request(client="1")) for _ in range(3)]
    with pytest.raises(QueueFull):
        engine.submit(_request(client="1"))
    other = engine.submit(_request(client="2"))
    for pending in many:
        pending.cancel()
    gate.open()
    assert other.future.result(timeout=30).finish_reason is FinishReason.LENGTH


def test_the_queue_is_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _Gate(engine, monkeypatch)
    pending: list[PendingGeneration] = [engine.submit(_request("0"))]
    assert gate.entered.wait(10)
    pending += [engine.submit(_request(str(i))) for i in (1, 2, 3)]
    with pytest.raises(QueueFull):
        engine.submit(_request("4"))
    # A newer request of a waiting document takes its place instead of another.
    pending.append(engine.submit(_request("3")))
    gate.open()
    reasons = [p.future.result(timeout=30).finish_reason for p in pending]
    assert reasons == [FinishReason.LENGTH] * 3 + [FinishReason.SUPERSEDED, FinishReason.LENGTH]


def test_a_failing_request_does_not_end_the_engine(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr(engine.runtime.decoder, "forward", broken)
    pending = engine.submit(_request("a"))
    with pytest.raises(RuntimeError, match="broken"):
        pending.future.result(timeout=10)
    monkeypatch.undo()
    assert engine.submit(_request("a")).future.result(timeout=30).finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (GenerationRequest(()), InvalidRequest),
        (GenerationRequest((5000,)), InvalidRequest),
        (GenerationRequest((-1,)), InvalidRequest),
        (GenerationRequest((1,), max_new_tokens=0), InvalidRequest),
        (GenerationRequest((1,), temperature=float("nan")), InvalidRequest),
        (GenerationRequest((1,), draft="best"), InvalidRequest),  # type: ignore[arg-type]
        (GenerationRequest((1,) * 1024), PromptTooLong),
    ],
)
def test_bad_requests_name_their_fault(
    engine: Engine, request_: GenerationRequest, error: type[DraftlineError]
) -> None:
    with pytest.raises(error) as caught:
        engine.submit(request_)
    assert caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize(
    "fields",
    [{"numerics": "int3"}, {"draft": "x"}, {"threads": 0}, {"context": 5}, {"prefill_chunk": 0}],
)
def test_bad_configurations_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        Engine(EngineConfig(**fields))  # type: ignore[arg-type]


def test_states_up_to_ready_and_stopped(home: None, looping_model: Path) -> None:
    seen: list[EngineStatus] = []
    engine = Engine(EngineConfig(model=str(looping_model), context=512), seen.append)
    with pytest.raises(EngineStopped):
        engine.submit(_request())
    engine.start()
    engine.wait_ready(120)
    waiting = [engine.submit(_request(str(i), max_new_tokens=300)) for i in range(4)]
    engine.close()
    reasons = {p.future.result(timeout=5).finish_reason for p in waiting}
    assert reasons <= {FinishReason.CANCELLED, FinishReason.LENGTH}
    with pytest.raises(EngineStopped):
        engine.submit(_request())
    engine.close()
    states = [status.state for status in seen]
    assert states[0] is EngineState.LOADING
    assert EngineState.READY in states
    assert states[-1] is EngineState.STOPPED
    fractions = [s.fraction for s in seen if s.state is EngineState.LOADING and s.fraction is not None]
    assert max(fractions) == 1.0


def test_a_missing_model_fails_with_its_next_step(home: None) -> None:
    engine = Engine(EngineConfig())
    engine.start()
    with pytest.raises(DraftlineError) as caught:
        engine.wait_ready(60)
    assert caught.value.code == "model-not-fetched"
    assert "draftline model fetch" in caught.value.next_step
    assert engine.status.state is EngineState.FAILED
    engine.close()


def test_closing_while_loading(home: None, looping_model: Path) -> None:
    engine = Engine(EngineConfig(model=str(looping_model)))
    engine.start()
    time.sleep(0.01)
    engine.close()
    assert engine.status.state is EngineState.STOPPED


def _close_without_waiting(engine: Engine, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """More patience than a test has: the thread comes back after `close` has given it up."""
    monkeypatch.setattr(engine._thread, "join", lambda timeout: None)
    engine.close()
    go_on.set()
    threading.Thread.join(engine._thread, 30)


def test_closing_does_not_end_as_a_failure_or_keep_the_model(
    home: None, looping_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[EngineStatus] = []
    loading, go_on = threading.Event(), threading.Event()
    load = runtime_module.load_runtime

    def slow(config: EngineConfig, on_progress: Callable[[str, float | None], None]) -> Runtime:
        loaded = load(config, on_progress)
        loading.set()
        assert go_on.wait(30)
        if config.context == 512:
            on_progress("Nearly done.", 0.9)
        return loaded

    monkeypatch.setattr(runtime_module, "load_runtime", slow)
    for context in (512, 640):
        loading.clear()
        go_on.clear()
        engine = Engine(EngineConfig(model=str(looping_model), context=context), seen.append)
        engine.start()
        assert loading.wait(60)
        _close_without_waiting(engine, go_on, monkeypatch)
        assert engine.status.state is EngineState.STOPPED
        assert engine._runtime is None
    assert EngineState.FAILED not in [status.state for status in seen]


def test_an_engine_closed_while_a_library_is_imported_does_not_begin_to_load(
    looping_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        importing.set()
        assert go_on.wait(30)

    monkeypatch.setattr(openmp, "import_torch", slow)
    seen: list[EngineStatus] = []
    engine = Engine(EngineConfig(model=str(looping_model), context=512), seen.append)
    engine.start()
    assert importing.wait(30)
    _close_without_waiting(engine, go_on, monkeypatch)
    assert [status.state for status in seen] == [EngineState.STOPPED]


def test_whoever_waits_hears_of_the_end_of_the_worker(
    home: None, looping_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(EngineConfig(model=str(looping_model), context=512))
    engine.start()
    engine.wait_ready(120)
    gate = _Gate(engine, monkeypatch)
    running, waiting = engine.submit(_request("a")), engine.submit(_request("b"))
    assert gate.entered.wait(10)

    def broken(document: str) -> None:
        raise MemoryError("no room to forget")

    monkeypatch.setattr(engine.runtime, "close_document", broken)
    engine.close_document("c")
    gate.open()
    assert running.future.result(timeout=30).finish_reason is FinishReason.LENGTH
    with pytest.raises(DraftlineError, match="no room to forget"):
        waiting.future.result(timeout=30)
    assert engine.status.state is EngineState.FAILED
    with pytest.raises(DraftlineError, match="The engine failed"):
        engine.submit(_request("d"))
    engine.close()
    assert engine.status.state is EngineState.STOPPED


def test_a_budget_too_small_for_one_slot_is_refused(home: None, looping_model: Path) -> None:
    engine = Engine(EngineConfig(model=str(looping_model), context=32768, kv_budget_mb=1))
    engine.start()
    with pytest.raises(DraftlineError) as caught:
        engine.wait_ready(60)
    assert caught.value.code == NotEnoughMemory.code
    assert "--kv-budget" in caught.value.next_step


def test_closed_documents_are_forgotten(engine: Engine) -> None:
    engine.submit(_request("secret")).future.result(timeout=30)
    engine.close_document("secret")
    result = engine.submit(_request("other", max_new_tokens=1)).future.result(timeout=30)
    assert result.finish_reason is FinishReason.LENGTH
    assert all(slot.document != "secret" for slot in engine.runtime.slots.slots)


def test_chunks_are_plain_data() -> None:
    assert Chunk("a", (1,)) == Chunk("a", (1,))


def test_texts_are_read_while_nothing_is_asked_for(engine: Engine) -> None:
    text = "def alpha(beta):\n    return beta\n" * 200
    shared = engine.runtime.generator.memory.shared
    before, size = len(shared), len(engine.tokenizer.encode(text))
    engine.learn("b.py", text)
    engine.learn("", text)
    _until(lambda: len(shared) >= before + size)
    assert "text b.py" in shared.owners and "text " not in shared.owners
    engine.learn("b.py", "\udc80")  # not every string has tokens
    engine.submit(_request("a.py")).future.result(timeout=30)
    assert {"text b.py", "answers a.py"} <= shared.owners
    engine.close_document("b.py")
    engine.close_document("a.py")
    _until(lambda: not {"text b.py", "answers a.py"} & shared.owners)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
