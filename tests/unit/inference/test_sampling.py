"""Sampling draws from the model's own distribution, filters included, with and without drafts."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig, GenerationRequest
from inference.runtime import Runtime, load_runtime
from inference.sampling import Sampling, choose, filtered
from tests.tiny_models import make_tiny

SCORES = torch.tensor([1.0, 3.0, 2.0, 3.0, -1.0])


def kept(**filters: Any) -> set[int]:
    row = filtered(SCORES, Sampling(temperature=1.0, **filters))
    return {token for token in range(5) if row[token] > -torch.inf}


def test_filters() -> None:
    chances = SCORES.softmax(-1)
    assert kept() == {0, 1, 2, 3, 4}
    assert kept(top_k=3) == {1, 2, 3} and kept(top_k=99) == {0, 1, 2, 3, 4}
    assert kept(top_k=1) == {1, 3}, "equals stay together"
    assert kept(top_p=float(chances[1]) * 1.5) == {1, 3}
    assert kept(top_p=float(chances[1]) * 0.5) == {1}
    assert kept(top_p=0.0) == {1}, "the likeliest token always stays"
    assert kept(min_p=math.exp(-1) - 0.01) == {1, 2, 3} and kept(min_p=math.exp(-1) + 0.01) == {1, 3}
    assert kept(top_k=3, min_p=0.9) == {1, 3}


def test_the_temperature_comes_first() -> None:
    hot = filtered(SCORES, Sampling(temperature=10.0, min_p=0.7))
    assert int((hot > -torch.inf).sum()) == 4
    assert torch.equal(filtered(SCORES, Sampling(temperature=2.0)), SCORES / 2)


def test_greedy_takes_the_first_of_equals() -> None:
    assert choose(SCORES[None], 7, Sampling(top_k=1, seed=3)) == [1]


def test_a_row_alone_and_among_others() -> None:
    logits = torch.randn(6, 40)
    sampling = Sampling(temperature=0.9, top_k=20, top_p=0.9, min_p=0.01, seed=5)
    whole = choose(logits, 100, sampling)
    assert whole == [choose(logits[row : row + 1], 100 + row, sampling)[0] for row in range(6)]
    assert whole != choose(logits, 100, Sampling(temperature=0.9, seed=6))


@pytest.fixture
def small(tmp_path: Path, tiny_home: Path) -> Runtime:
    make_tiny(tmp_path / "small", "qwen2", seed=11, gain=1.0)
    return load_runtime(EngineConfig(model=str(tmp_path / "small")), lambda message, fraction: None)


DRAWS = 50_000


def test_three_tokens_have_the_product_of_their_probabilities(small: Runtime) -> None:
    """Joint distribution against the exact one, chi-square over all outcomes expected often enough."""
    prompt = (5, 9, 200)
    sampling = Sampling(temperature=0.8, top_k=3)

    def logits(prefix: tuple[int, ...]) -> torch.Tensor:
        with torch.inference_mode():
            rows = small.decoder.forward([*prompt, *prefix], small.decoder.new_slot(64))
        assert rows is not None
        return rows[-1:]

    known: dict[tuple[int, ...], torch.Tensor] = {}
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(DRAWS):
        prefix: tuple[int, ...] = ()
        for _ in range(3):
            if prefix not in known:
                known[prefix] = logits(prefix)
            drawn = choose(known[prefix], len(prompt) + len(prefix), Sampling(0.8, 3, seed=seed))
            prefix += (drawn[0],)
        counts[prefix] = counts.get(prefix, 0) + 1

    expected: dict[tuple[int, ...], float] = {}
    for outcome in _outcomes(known, sampling, ()):
        chance = 1.0
        for place, token in enumerate(outcome):
            row = filtered(known[outcome[:place]][0], sampling)
            chance *= float(row.softmax(-1)[token])
        expected[outcome] = chance * DRAWS
    assert set(counts) <= set(expected)
    assert abs(sum(expected.values()) - DRAWS) < 1.0
    often = [outcome for outcome, count in expected.items() if count >= 5]
    rare = DRAWS - sum(expected[outcome] for outcome in often)
    square = sum((counts.get(o, 0) - expected[o]) ** 2 / expected[o] for o in often)
    freedom = len(often) - (rare < 5)
    # Wilson and Hilferty: the cube root of chi-square is nearly normal; 5 sigma.
    limit = freedom * (1 - 2 / (9 * freedom) + 5 * math.sqrt(2 / (9 * freedom))) ** 3
    assert len(often) > 10 and square < limit, (square, limit, freedom)

    # What the engine draws is what was counted above, with and without drafts.
    for seed, draft in itertools.product(range(20), ("none", "auto")):
        request = GenerationRequest(
            prompt, max_new_tokens=3, temperature=0.8, top_k=3, seed=seed, draft=draft, use_cache=False
        )
        drawn_ids = small.run(request, lambda chunk: None, lambda: None).token_ids
        prefix = ()
        for _ in range(3):
            prefix += (choose(known[prefix], len(prompt) + len(prefix), Sampling(0.8, 3, seed=seed))[0],)
        assert drawn_ids == prefix


def _outcomes(
    known: dict[tuple[int, ...], torch.Tensor], sampling: Sampling, prefix: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """All triples that the filters leave and whose beginnings were drawn."""
    if len(prefix) == 3:
        return [prefix]
    if prefix not in known:
        return []
    row = filtered(known[prefix][0], sampling)
    tokens = torch.nonzero(row > -torch.inf).flatten().tolist()
    return [outcome for token in tokens for outcome in _outcomes(known, sampling, (*prefix, token))]
