"""The real model, 50 places in real files: the bits depend on the prompt alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests import exactness
from tests.exactness import Case

pytestmark = pytest.mark.model

FILES = (
    "bisect.py",
    "heapq.py",
    "shlex.py",
    "textwrap.py",
    "string.py",
    "contextlib.py",
    "fnmatch.py",
    "queue.py",
    "graphlib.py",
    "sched.py",
)
# Characters between two places of a file; a token is about four of them. The last is beyond one KV bucket.
STEPS = (350, 250, 300, 400, 1100)
CONTEXT = 6144


def _cases() -> list[Case]:
    cases = []
    for name, text in exactness.standard_library(FILES).items():
        # Further and further down a file, as one works: what stands above is read once by those who keep it.
        start = at = len(text) // 5
        for step in STEPS:
            at += step
            cases.append(Case(name, text[start:at], text[at : at + 250]))
    # One place far beyond 4096 tokens.
    text = exactness.standard_library(("argparse.py",))["argparse.py"]
    cases[-1] = Case("argparse.py", text[1000:21500], text[21500:21750])
    return cases


def _session(cases: list[Case]) -> list[Case]:
    """An editor with several files open: three keys before each place, two files in turns."""
    session = []
    half = len(cases) // 2
    for one, other in zip(cases[:half], cases[half:], strict=True):
        for case in (one, other):
            session += [*exactness.typing(case), case]
    return session


def _essence(results: list[dict[str, Any]]) -> list[tuple[str, list[int], str]]:
    return [(r["text"], r["token_ids"], r["logits_sha256"]) for r in results]


def test_fifty_places(real_model: str) -> None:
    cases = _cases()
    assert len(cases) == 50
    common: dict[str, Any] = {"model": real_model, "context": CONTEXT}
    fresh = exactness.run(cases, draft="none", use_cache=False, **common)
    expected = _essence(fresh)

    # A long edited session: many keys, several files, two slots for all of them.
    session = _session(cases)
    edited = exactness.run(session, draft="ngram", kv_budget_mb=320, **common)
    places = [cases.index(case) for case in session if not case.warming]
    assert _essence(edited) == [expected[i] for i in places]

    # Prefill in blocks of 16 to 512 rows, planned drafts.
    for offset, chunk in enumerate((16, 64, 200, 512)):
        # Of each length one; and the longest of all once, in blocks that end nowhere a bucket does.
        part = [5 * (2 * offset + step % 2) + step for step in range(len(STEPS))]
        part += [len(cases) - 1] * (chunk == 200)
        chunked = exactness.run(
            [cases[i] for i in part], draft="auto", use_cache=False, prefill_chunk=chunk, **common
        )
        assert _essence(chunked) == [expected[i] for i in part], f"prefill chunk {chunk}"

    # The comparison means something only if all of this happened.
    assert all(r["drafted"] == 0 and r["cached_tokens"] == 0 for r in fresh)
    assert sum(r["accepted"] for r in edited) > 100
    assert sum(r["drafted"] - r["accepted"] for r in edited) > 100
    assert sum(r["cached_tokens"] > 0 for r in edited) == len(cases)
    assert sum(r["forwards"] for r in edited) < sum(r["forwards"] for r in fresh)
    assert sum(r["prompt_tokens"] > 512 for r in fresh) >= 8
    assert max(r["prompt_tokens"] for r in fresh) > 4096
    assert len({r["text"] for r in fresh}) > 40


@pytest.fixture(scope="module")
def here(real_model: str) -> list[tuple[str, list[int], str]]:
    """Four places on the instruction set of this machine."""
    return _essence(exactness.run(_cases()[:20:5], draft="none", model=real_model, context=2048))


@pytest.mark.isa
@pytest.mark.parametrize("isa", ["AVX512_CORE_VNNI", "AVX2_VNNI", "AVX2"])
def test_other_instruction_sets(real_model: str, here: list[tuple[str, list[int], str]], isa: str) -> None:
    """Integer sums are exact in every kernel chosen, so even the bits agree across sets."""
    cases = _cases()[:20:5]
    common: dict[str, Any] = {"model": real_model, "context": 2048}
    capped = {"ONEDNN_MAX_CPU_ISA": isa}
    plain = exactness.run(cases, draft="none", use_cache=False, environment=capped, **common)
    session = [step for case in cases for step in (*exactness.typing(case), case)]
    drafted = exactness.run(session, draft="ngram", environment=capped, **common)
    assert _essence(plain) == _essence(drafted)
    assert _essence(plain) == here
    assert sum(r["accepted"] for r in drafted) > 0
    assert sum(r["cached_tokens"] > 0 for r in drafted) == len(cases)
