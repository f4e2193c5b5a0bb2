"""Any sequence of requests gets the texts of plain decoding from nothing, whatever came before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference.api import Chunk, EngineConfig, FinishReason, GenerationRequest, KvNumerics, StopRules
from inference.drafting.model_worth import Costs, ModelWorth
from inference.runtime import Runtime, load_runtime
from tests.tiny_models import make_drafter, make_tiny

BUDGET_MB = 6
REQUESTS = 100


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A model whose heads are wide enough for the compiled steps, hence for trees, and one that drafts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("random-home")))
        model = make_tiny(tmp_path_factory.mktemp("wide"), gain=1.0, tie_word_embeddings=False, head_dim=64)
        yield model, make_drafter(tmp_path_factory.mktemp("wide-drafter"), model)


def _request(rng: random.Random, documents: list[list[int]], decode: Runtime) -> GenerationRequest:
    number = rng.randrange(len(documents))
    text = documents[number]
    at = rng.randrange(len(text))
    text[at : at + rng.randrange(3)] = [rng.randrange(10, 400) for _ in range(rng.randrange(3))]
    cut = rng.randrange(10, len(text))

    def word() -> str:
        return decode.tokenizer.decode([rng.randrange(60, 400)]).replace("\ufffd", "")

    strings = tuple(filter(None, (word(), word()))) if rng.random() < 0.3 else ()
    return GenerationRequest(
        tuple(text[:cut]),
        document=rng.choice([str(number), str(number), ""]),
        heal=word() if rng.random() < 0.3 else "",
        max_new_tokens=rng.choice([1, 5, 30, 80]),
        stops=StopRules(strings=strings, max_lines=rng.choice([None, 3]), min_indent=rng.choice([None, 2])),
        temperature=rng.choice([0.0, 0.0, 0.7]),
        top_p=rng.choice([1.0, 0.8]),
        seed=rng.randrange(9),
        draft="auto",
        source_hint=(0, cut // 2) if rng.random() < 0.2 else None,
        digest_logits=True,
    )


@pytest.mark.parametrize(("kv", "seed"), [("fp32", 1), ("int8", 2)])
def test_texts_are_those_of_plain_decoding(
    kv: KvNumerics, seed: int, models: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What pays follows from times; the requests must not.
    rng, coin = random.Random(seed), random.Random(seed)
    # The tiny models' own costs would say that nothing pays.
    monkeypatch.setattr(ModelWorth, "costs", lambda self, plain_ms, row: Costs(0.05, 0.03))
    monkeypatch.setattr(ModelWorth, "pays", lambda self, ask, costs: coin.random() < 0.5)
    config = EngineConfig(
        str(models[0]), draft_model=str(models[1]), context=1000, kv=kv, kv_budget_mb=BUDGET_MB
    )
    runtime = load_runtime(config, lambda message, fraction: None)
    draft_model = runtime.draft_model
    assert draft_model is not None
    documents = [[rng.randrange(10, 400) for _ in range(size)] for size in (60, 300, 530, 700)]
    cached = accepted = cancelled = 0
    for _ in range(REQUESTS):
        request = _request(rng, documents, runtime)
        asked, most = [0], rng.choice([10**6, 10**6, 10**6, rng.randrange(1, 20)])

        def stop(asked: list[int] = asked, most: int = most) -> FinishReason | None:
            asked[0] += 1
            return FinishReason.CANCELLED if asked[0] > most else None

        chunks: list[Chunk] = []
        drafted = runtime.run(request, chunks.append, stop)
        alone = replace(request, draft="none", use_cache=False, document="plain")
        plain = runtime.run(alone, lambda chunk: None, lambda: None)
        assert "".join(chunk.text for chunk in chunks) == drafted.text
        assert drafted.token_ids == plain.token_ids[: len(drafted.token_ids)]
        if drafted.reason is not FinishReason.CANCELLED:
            assert (drafted.text, drafted.reason) == (plain.text, plain.reason)
            assert drafted.logits_sha256 == plain.logits_sha256
        followers = sum(follower.slot.nbytes for follower in draft_model._followers.values())
        assert runtime.slots.usage().used + followers <= BUDGET_MB << 20
        if rng.random() < 0.05:
            runtime.close_document(request.document)
        cached += drafted.cached_tokens
        accepted += drafted.accepted
        cancelled += drafted.reason is FinishReason.CANCELLED
    assert cached and accepted and cancelled, "else it tests nothing"
