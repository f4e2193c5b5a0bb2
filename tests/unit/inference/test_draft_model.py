"""A draft model never changes the text, and its slot follows the sequence cheaply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig, EngineState, FinishReason, GenerationRequest, StopRules
from inference.cache.offload import Parking
from inference.drafting.draft_model import WINDOW
from inference.drafting.model_worth import Ask, Costs, ModelWorth
from inference.engine import Engine
from inference.errors import InvalidRequest
from inference.generation import Outcome, Step
from inference.model.linear import short_head
from inference.runtime import Runtime, load_runtime
from tests.tiny_models import make_drafter, make_tiny

PROMPT = tuple((7 * i) % 400 for i in range(100))
CHEAP = Costs(0.05, 0.03)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("draft-home")))
        yield


@pytest.fixture(scope="module")
def smaller_model(looping_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_drafter(tmp_path_factory.mktemp("smaller"), looping_model)


def _load(model: Path, draft: Path, **options: Any) -> Runtime:
    config = EngineConfig(model=str(model), draft_model=str(draft), **options)
    return load_runtime(config, lambda message, fraction: None)


@pytest.fixture(scope="module")
def runtime(home: None, looping_model: Path, smaller_model: Path) -> Runtime:
    return _load(looping_model, smaller_model, context=1024, kv_budget_mb=10)


@pytest.fixture(scope="module")
def twin(home: None, looping_model: Path) -> Runtime:
    """The model drafts for itself. What a plain step takes is known: before that nothing is drafted."""
    twin = _load(looping_model, looping_model, context=1024)
    _run(twin, draft="none", use_cache=False, max_new_tokens=8)
    return twin


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up costs: the tiny models' own would say that nothing pays."""
    monkeypatch.setattr(ModelWorth, "costs", lambda self, plain_ms, row: CHEAP)


@pytest.fixture
def always(cheap: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft model is asked at every step, and its drafts are long however unsure it is."""
    monkeypatch.setattr(ModelWorth, "pays", lambda self, ask, costs: True)
    monkeypatch.setattr(ModelWorth, "goes_on", lambda self, chance, drafted, forwards, costs: drafted < 6)
    monkeypatch.setattr(ModelWorth, "chance", lambda self, probability: 1.0)


def _run(runtime: Runtime, stop: Any = lambda: None, **fields: Any) -> Outcome:
    # What was chosen before would make better drafts than any model.
    runtime.generator.recycling.clear()
    request = replace(GenerationRequest(PROMPT, max_new_tokens=60, digest_logits=True), **fields)
    return runtime.run(request, lambda chunk: None, stop)


def _of_model(outcome: Outcome) -> list[Step]:
    return [step for step in outcome.steps if step.source == "model"]


def _same(one: Outcome, other: Outcome) -> bool:
    return one.token_ids == other.token_ids and one.logits_sha256 == other.logits_sha256


@pytest.mark.parametrize("temperature", [0.0, 0.6])
@pytest.mark.parametrize("chunk", [16, 128])
def test_tokens_and_logits_are_those_of_plain_decoding(
    home: None, looping_model: Path, smaller_model: Path, always: None, temperature: float, chunk: int
) -> None:
    runtime = _load(looping_model, smaller_model, context=1024, prefill_chunk=chunk)
    steps: list[Step] = []
    for start in range(6):
        # Each prompt goes on from the one before: a document that is being typed.
        prompt = PROMPT[: 60 + 7 * start]
        common = {"prompt": prompt, "temperature": temperature, "seed": start, "document": "a.py"}
        plain = _run(runtime, draft="none", use_cache=False, **common)
        for use_cache in (False, True):
            drafted = _run(runtime, draft="auto", use_cache=use_cache, **common)
            assert _same(plain, drafted), (start, use_cache)
            steps += _of_model(drafted)
    assert sum(step.accepted for step in steps) > 20
    assert sum(step.drafted - step.accepted for step in steps) > 20


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_all_drafts_of_the_model_itself_are_accepted(twin: Runtime, always: None, temperature: float) -> None:
    plain = _run(twin, draft="none", temperature=temperature)
    drafted = _run(twin, draft="auto", temperature=temperature)
    assert _same(plain, drafted)
    steps = _of_model(drafted)
    assert steps and all(step.accepted == step.drafted for step in steps)
    assert drafted.forwards <= 2 + 60 // 4


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_with_a_short_head(
    home: None,
    looping_model: Path,
    smaller_model: Path,
    always: None,
    monkeypatch: pytest.MonkeyPatch,
    temperature: float,
) -> None:
    monkeypatch.setattr(short_head, "FREQUENT", 64)
    for draft in (smaller_model, looping_model):
        runtime = _load(looping_model, draft, context=256)
        model = runtime.draft_model
        assert model is not None and model.head is not None
        assert model.head.out_features < model.decoder.config.vocab_size
        drafted = _run(runtime, temperature=temperature, seed=3)
        assert _same(drafted, _run(runtime, temperature=temperature, seed=3, draft="none"))
        assert {*PROMPT} <= {*model.head.ids.tolist()}, "the text's own tokens can be drafted"
    assert drafted.accepted > 0, "the model itself is right about tokens that it has seen"


def test_planned_drafts_pay_and_change_nothing(runtime: Runtime, cheap: None) -> None:
    plain = _run(runtime, draft="none", max_new_tokens=200)
    drafted = _run(runtime, draft="auto", max_new_tokens=200)
    assert _same(plain, drafted)
    assert sum(step.accepted for step in _of_model(drafted)) > 0
    assert drafted.forwards < plain.forwards


def _draft_forwards(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each forward of the draft model from now on."""
    model = runtime.draft_model
    assert model is not None
    rows: list[int] = []
    forward = model.decoder.forward

    def counting(tokens: list[int], *rest: Any) -> Any:
        rows.append(len(tokens))
        return forward(tokens, *rest)

    monkeypatch.setattr(model.decoder, "forward", counting)
    return rows


def test_the_slot_follows_what_was_accepted(
    twin: Runtime, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = _draft_forwards(twin, monkeypatch)
    outcome = _run(twin, draft="auto", document="a.py", max_new_tokens=40)
    assert len(_of_model(outcome)) == len(outcome.steps) > 3
    # The prompt with the first token; then one row each, and two behind an accepted draft: its last token was
    # never fed, and neither was the target's own behind it.
    assert rows[0] == len(PROMPT) + 1
    assert set(rows[1:]) == {1, 2}
    assert rows[1:].count(2) == len(outcome.steps) - 1
    rows.clear()
    _run(twin, draft="auto", document="a.py", max_new_tokens=8)
    assert rows[0] == 2, "the next request of the document finds the prompt read but for its last token"


def test_nothing_is_read_before_a_draft_is_wanted(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _draft_forwards(runtime, monkeypatch)
    monkeypatch.setattr(ModelWorth, "costs", lambda self, plain_ms, row: Costs(10.0, 0.03))
    outcome = _run(runtime, draft="auto")
    assert rows == [] and not _of_model(outcome)
    for draft in ("none", "ngram"):
        _run(runtime, draft=draft)
    assert rows == []


def test_without_the_cache_the_draft_model_reads_everything(
    twin: Runtime, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = _draft_forwards(twin, monkeypatch)
    for _ in range(2):
        rows.clear()
        _run(twin, draft="auto", use_cache=False, max_new_tokens=8)
        assert rows[0] == len(PROMPT) + 1


def test_of_a_long_text_the_end_is_read(twin: Runtime, always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _draft_forwards(twin, monkeypatch)
    prompt = tuple((7 * i + i // 50) % 400 for i in range(600))
    options: dict[str, Any] = {"document": "long.py", "max_new_tokens": 24}
    plain = _run(twin, prompt=prompt, draft="none", use_cache=False, max_new_tokens=24)
    drafted = _run(twin, prompt=prompt, draft="auto", **options)
    assert _same(plain, drafted) and _of_model(drafted)
    assert sum(rows) - WINDOW < 4 * 24, "no more than the window is read at once"
    # The next request of the document goes on where the slot begins.
    rows.clear()
    longer = (*prompt, *plain.token_ids[:8], 5, 6)
    plain = _run(twin, prompt=longer, draft="none", use_cache=False, max_new_tokens=24)
    drafted = _run(twin, prompt=longer, draft="auto", **options)
    assert _same(plain, drafted) and rows[0] < 16
    # Text before its begin is another one: nothing of it is used.
    rows.clear()
    drafted = _run(twin, prompt=longer[:40], draft="auto", **options)
    assert _same(drafted, _run(twin, prompt=longer[:40], draft="none", use_cache=False, max_new_tokens=24))
    assert rows[0] == 41


def test_a_short_text_in_the_slot_of_a_long_one_is_drafted_for(twin: Runtime, always: None) -> None:
    long = tuple((7 * i + i // 50) % 400 for i in range(400))
    _run(twin, prompt=long, draft="auto", document="both.py", max_new_tokens=8)
    drafted = _run(twin, prompt=long[:60], draft="auto", document="both.py", max_new_tokens=24)
    plain = _run(twin, prompt=long[:60], draft="none", use_cache=False, max_new_tokens=24)
    assert _same(drafted, plain) and _of_model(drafted)


def test_another_epoch_begins_anew(
    home: None, looping_model: Path, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = _load(looping_model, looping_model, context=1024)
    rows = _draft_forwards(runtime, monkeypatch)
    _run(runtime, draft="auto", document="a.py")
    runtime.epoch += 1
    rows.clear()
    _run(runtime, draft="auto", document="a.py")
    assert rows[0] == len(PROMPT) + 1


def test_cancelling_while_the_draft_model_reads(
    home: None, looping_model: Path, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = _load(looping_model, looping_model, context=1024, prefill_chunk=16)
    rows = _draft_forwards(runtime, monkeypatch)
    plain = _run(runtime, draft="none", document="a.py")
    target = _counted(runtime, monkeypatch)

    def stop() -> FinishReason | None:
        return FinishReason.CANCELLED if len(rows) >= 3 else None

    cancelled = _run(runtime, stop, draft="auto", document="a.py")
    assert cancelled.reason is FinishReason.CANCELLED
    assert rows == [16, 16, 16], "no further block was read"
    assert target == [1], "and the target made no forward but the prompt's last"
    assert len(cancelled.token_ids) == 1
    rows.clear()
    again = _run(runtime, draft="auto", document="a.py")
    assert _same(plain, again)
    assert sum(rows[:4]) == len(PROMPT) + 1 - 3 * 16, "what was read before the cancel counts"


def _counted(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rows: list[int] = []
    forward = runtime.decoder.forward

    def counting(tokens: list[int], *rest: Any) -> Any:
        rows.append(len(tokens))
        return forward(tokens, *rest)

    monkeypatch.setattr(runtime.decoder, "forward", counting)
    return rows


def test_a_deadline_holds_while_drafting(runtime: Runtime, always: None) -> None:
    plain = _run(runtime, draft="none", max_new_tokens=400)
    cut = _run(runtime, draft="auto", max_new_tokens=400, stops=StopRules(deadline_ms=3))
    assert cut.reason is FinishReason.DEADLINE
    assert 0 < len(cut.token_ids) < 400
    assert plain.token_ids[: len(cut.token_ids)] == cut.token_ids


def test_up_to_the_end_of_the_context(runtime: Runtime, always: None) -> None:
    prompt = tuple((3 * i) % 400 for i in range(runtime.context - 12))
    plain = _run(runtime, draft="none", prompt=prompt)
    drafted = _run(runtime, draft="auto", prompt=prompt)
    assert plain.reason is drafted.reason is FinishReason.CONTEXT
    assert _same(plain, drafted) and _of_model(drafted)


def test_a_draft_model_with_a_shorter_context_falls_silent(
    home: None, looping_model: Path, tmp_path: Path, always: None
) -> None:
    short = make_drafter(tmp_path / "short", looping_model, context=110)
    runtime = _load(looping_model, short, context=1024)
    plain, drafted = _run(runtime, draft="none"), _run(runtime, draft="auto")
    assert _same(plain, drafted) and _of_model(drafted)
    model = runtime.draft_model
    assert model is not None and model.context == 110
    silent = _run(runtime, draft="auto", prompt=(*PROMPT, *PROMPT))
    assert not _of_model(silent)


def test_a_full_slot_of_a_draft_model_begins_anew(
    home: None, looping_model: Path, tmp_path: Path, always: None
) -> None:
    short = make_drafter(tmp_path / "short", looping_model, context=320)
    runtime = _load(looping_model, short, context=1024)
    prompt = tuple((7 * i + i // 50) % 400 for i in range(290))
    common: dict[str, Any] = {"prompt": prompt, "max_new_tokens": 180}
    plain, drafted = _run(runtime, draft="none", **common), _run(runtime, draft="auto", **common)
    assert _same(plain, drafted)
    tokens = [1 + step.accepted for step in drafted.steps]
    late = [step for at, step in enumerate(drafted.steps) if sum(tokens[:at]) > 140]
    assert any(step.source == "model" for step in late), "not silent from the slot's end on"


def test_padded_ids_are_never_drafted(home: None, looping_model: Path, tmp_path: Path, always: None) -> None:
    padded = make_drafter(tmp_path / "padded", looping_model, layers=3, padding=64)
    runtime = _load(looping_model, padded)
    model = runtime.draft_model
    assert model is not None and model.decoder.config.vocab_size == 576 and model.vocab_size == 512
    logits = model.decoder.forward(list(PROMPT), model.decoder.new_slot(128), len(PROMPT) - 1)
    assert logits is not None and int(logits.argmax()) >= 512
    for temperature in (0.0, 1.0):
        drafted = _run(runtime, draft="auto", temperature=temperature)
        assert _same(_run(runtime, draft="none", temperature=temperature), drafted)
        assert all(step.accepted == step.drafted for step in _of_model(drafted))


def test_tokens_that_the_draft_model_lacks_silence_it(
    home: None, looping_model: Path, tmp_path: Path, always: None
) -> None:
    padded = make_drafter(tmp_path / "padded", looping_model, layers=3, padding=64)
    runtime = _load(padded, looping_model)
    prompt = (*PROMPT[:40], 570, *PROMPT[40:])
    plain, drafted = _run(runtime, draft="none", prompt=prompt), _run(runtime, draft="auto", prompt=prompt)
    assert _same(plain, drafted) and not _of_model(drafted)


def test_closed_documents_are_forgotten_by_both(runtime: Runtime, always: None) -> None:
    model = runtime.draft_model
    assert model is not None
    _run(runtime, draft="auto", document="a.py")
    (target,) = (slot for slot in runtime.slots.slots if slot.document == "a.py")
    follower = model.follower_of(target)
    assert follower is not None and follower.slot.length > len(PROMPT)
    runtime.close_document("a.py")
    assert follower.slot.length == 0


def test_documents_push_each_other_out(home: None, looping_model: Path, always: None) -> None:
    runtime = _load(looping_model, looping_model, context=1024, kv_budget_mb=4)
    for round_ in range(2):
        for number in range(4):
            prompt = tuple((number + 5 * i) % 400 for i in range(150))
            common = {"prompt": prompt, "document": f"{number}.py", "max_new_tokens": 20 + round_}
            assert _same(_run(runtime, draft="none", **common), _run(runtime, draft="auto", **common))
    model = runtime.draft_model
    assert model is not None
    assert all(model.follower_of(slot) is not None for slot in runtime.slots.slots)


def test_a_parked_slot_has_no_follower_left_on_the_device(
    home: None, looping_model: Path, always: None
) -> None:
    runtime = _load(looping_model, looping_model, context=1024, kv_budget_mb=4)
    runtime.slots._parking = Parking(1 << 30, lambda shape, dtype: torch.zeros(shape, dtype=dtype))
    model = runtime.draft_model
    assert model is not None
    for number in range(6):
        prompt = tuple((number + 5 * i) % 400 for i in range(150))
        _run(runtime, draft="auto", prompt=prompt, document=f"{number}.py", max_new_tokens=20)
    usage = runtime.slots.usage()
    assert usage.parked_slots > 0
    assert set(model._followers) == set(runtime.slots.slots)
    followers = sum(follower.slot.nbytes for follower in model._followers.values())
    assert usage.used + followers <= 4 << 20
    # It comes back, and is drafted for again.
    prompt = tuple(5 * i % 400 for i in range(150))
    back = _run(runtime, draft="auto", prompt=prompt, document="0.py", max_new_tokens=20)
    assert back.cached_tokens == len(prompt) - 1 and _of_model(back)


def test_the_ready_engine_names_both(home: None, looping_model: Path, smaller_model: Path) -> None:
    engine = Engine(EngineConfig(model=str(looping_model), draft_model=str(smaller_model), context=512))
    engine.start()
    engine.wait_ready(120)
    assert engine.status.state is EngineState.READY
    assert str(smaller_model) in engine.status.message and str(looping_model) in engine.status.message
    result = engine.submit(GenerationRequest(PROMPT, max_new_tokens=10)).future.result(timeout=30)
    assert len(result.token_ids) == 10
    with pytest.raises(InvalidRequest, match="source_hint"):
        engine.submit(GenerationRequest(PROMPT, source_hint=(5, 101)))
    engine.close()


def test_a_source_hint_drafts_from_the_first_token(home: None, tmp_path: Path) -> None:
    model = make_tiny(tmp_path / "model", gain=1.0, tie_word_embeddings=False)
    runtime = load_runtime(EngineConfig(model=str(model)), lambda message, fraction: None)
    plain = _run(runtime, draft="none", max_new_tokens=12)
    # The prompt holds the answer itself; the place is not found by its last two tokens.
    answer = plain.token_ids
    prompt = (*PROMPT[:20], *answer, *PROMPT[20:])
    hint = (20, 20 + len(answer))
    common = {"prompt": prompt, "max_new_tokens": 8, "use_cache": False, "draft": "auto"}
    silent, hinted = _run(runtime, **common), _run(runtime, source_hint=hint, **common)
    assert silent.token_ids == hinted.token_ids
    assert silent.steps[0].source != "pointer"
    assert hinted.steps[0].source == "pointer"


def test_asks_carry_what_is_known(twin: Runtime, cheap: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asks: list[Ask] = []

    def silent(self: ModelWorth, ask: Ask, costs: Costs) -> bool:
        asks.append(ask)
        return False

    monkeypatch.setattr(ModelWorth, "pays", silent)
    twin.slots.slots.clear()  # nothing to copy a beginning from
    _run(twin, draft="auto", document="b.py", max_new_tokens=10)
    assert asks[0] == replace(asks[0], backlog=len(PROMPT), left=9, answers=1)
    asks.clear()
    _run(twin, draft="auto", document="b.py", max_new_tokens=10)
    assert asks[0].answers > 1, "the document is warm"
    with torch.inference_mode():
        assert all(ask.other >= 1.0 for ask in asks)
