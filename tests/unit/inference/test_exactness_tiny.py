"""Speculative == plain, cached == fresh, any chunk == any other: bit for bit, on a tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import exactness
from tests.exactness import Case

FILES = ("bisect.py", "shlex.py", "textwrap.py")


# Bytes are about 1.6 per token in the tiny vocabulary: windows beyond one and beyond two buckets.
WINDOWS = (300, 900, 1900, 2600)


def _cases(windows: tuple[int, ...] = WINDOWS) -> list[Case]:
    cases = []
    for name, text in exactness.standard_library(FILES).items():
        places = exactness.cursors(text, len(windows), 2600)
        for window, (prefix, suffix) in zip(windows, places, strict=True):
            cases.append(Case(name, prefix[-window:], suffix, max_new_tokens=90))
    return cases


def _session(cases: list[Case]) -> list[Case]:
    """The cases as they come up in an editor: typed key by key, files interleaved."""
    by_file: dict[str, list[Case]] = {}
    for case in cases:
        by_file.setdefault(case.document, []).append(case)
    session = []
    for turn in zip(*by_file.values(), strict=True):
        for case in turn:
            session += [*exactness.typing(case), case]
    return session


def _essence(results: list[dict[str, Any]]) -> list[tuple[str, list[int], str]]:
    return [(r["text"], r["token_ids"], r["logits_sha256"]) for r in results]


@pytest.mark.parametrize(
    ("numerics", "mixed"),
    [
        ("int8", ""),
        ("nf4", ""),
        ("llm-int8", ""),
        ("bf16", ""),
        ("fp32", ""),
        ("int8", "layers.0.*=nf4,layers.1.mlp.*=llm-int8,layers.2.attn.qkv=bf16,head=fp32"),
    ],
)
def test_bits_are_the_same_whatever_the_path(
    looping_model: Path, tiny_home: Path, numerics: str, mixed: str
) -> None:
    # Where kernels work in tiles every size of a block counts; the others are slow, and have none.
    tiles = (numerics, mixed) == ("int8", "")
    cases = _cases() if tiles else _cases((300, 2600))
    common: dict[str, Any] = {
        "model": str(looping_model),
        "numerics": numerics,
        "context": 3072,
        "mixed": mixed,
    }
    fresh = exactness.run(cases, draft="none", use_cache=False, **common)
    session = _session(cases)
    order = [case for case in session if not case.warming]
    # 4 MB hold two slots: three files must push each other out.
    edited = exactness.run(session, draft="ngram", kv_budget_mb=10, **common)
    assert _essence(edited) == [_essence(fresh)[cases.index(case)] for case in order]
    chunks = {}
    for chunk in (16, 17, 128, 512) if tiles else (17, 512):
        chunks[chunk] = exactness.run(cases, draft="auto", use_cache=False, prefill_chunk=chunk, **common)
        assert _essence(chunks[chunk]) == _essence(fresh), f"prefill chunk {chunk}"
    # The comparison means something only if all of this happened.
    assert sum(r["drafted"] for r in fresh) == 0
    assert all(r["cached_tokens"] == 0 for r in fresh)
    assert sum(r["accepted"] for r in edited) > (100 if tiles else 8 * len(cases))
    assert sum(r["drafted"] - r["accepted"] for r in edited) > (100 if tiles else 8 * len(cases))
    assert sum(r["cached_tokens"] > 0 for r in edited) == len(cases)
    assert max(r["prompt_tokens"] for r in fresh) > 1024
    assert sum(r["forwards"] for r in edited) < sum(r["forwards"] for r in fresh)


def test_sampling_is_lossless(looping_model: Path, tiny_home: Path) -> None:
    cases = _cases()[:4]
    common: dict[str, Any] = {"model": str(looping_model), "context": 3072, "temperature": 0.05}
    plain = exactness.run(cases, draft="none", **common)
    drafted = exactness.run(cases, draft="ngram", **common)
    assert _essence(plain) == _essence(drafted)
    assert sum(r["accepted"] for r in drafted) > 0
    greedy = exactness.run(cases, draft="none", model=str(looping_model), context=3072)
    assert _essence(greedy) != _essence(plain)


@pytest.fixture(scope="module")
def here(looping_model: Path, tiny_home_path: Path) -> list[tuple[str, list[int], str]]:
    """Four cases on the instruction set of this machine."""
    home = {"DRAFTLINE_HOME": str(tiny_home_path)}
    results = exactness.run(
        _cases()[:4], draft="none", environment=home, model=str(looping_model), context=3072
    )
    return _essence(results)


@pytest.mark.isa
@pytest.mark.parametrize("isa", ["AVX512_CORE_VNNI", "AVX2_VNNI", "AVX2"])
def test_other_instruction_sets_give_the_same_bits(
    looping_model: Path, tiny_home: Path, here: list[tuple[str, list[int], str]], isa: str
) -> None:
    cases = _cases()[:4]
    common: dict[str, Any] = {"model": str(looping_model), "context": 3072}
    capped = {"ONEDNN_MAX_CPU_ISA": isa}
    plain = exactness.run(cases, draft="none", use_cache=False, environment=capped, **common)
    drafted = exactness.run(cases, draft="ngram", environment=capped, **common)
    assert _essence(plain) == _essence(drafted) == here
    assert sum(r["accepted"] for r in drafted) > 0
