"""Token recycling: chains of what the model chose before, and never another text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.api import EngineConfig, GenerationRequest
from inference.drafting import recycling
from inference.drafting.base import NOTHING, Proposal
from inference.drafting.recycling import RecyclingTable
from inference.generation import Outcome
from inference.runtime import Runtime, load_runtime


def test_a_chain_follows_pairs_and_then_tokens() -> None:
    table = RecyclingTable()
    assert table.propose(1, 2, 5) == NOTHING
    table.learn(1, [2, 3, 4], [3, 4, 5])
    assert table.propose(1, 2, 5) == Proposal((3, 4, 5), 2, "recycling")
    assert table.propose(9, 3, 2) == Proposal((4, 5), 1, "recycling"), (
        "an unknown pair falls back on its last token"
    )
    table.learn(7, [3], [8])
    assert table.propose(2, 3, 1).tokens == (4,), "the pair knows better"
    assert table.propose(9, 3, 1).tokens == (8,), "the newest choice behind a token"
    assert table.propose(1, 2, 0) == NOTHING


def test_a_rejected_draft_teaches_too() -> None:
    table = RecyclingTable()
    table.learn(1, [2, 50], [3, 51])  # 50 was drafted behind 2, the model wanted 3
    assert table.propose(1, 2, 1).tokens == (3,)
    assert table.propose(2, 50, 1).tokens == (51,)


def test_the_oldest_pairs_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycling, "MAX_PAIRS", 4)
    table = RecyclingTable()
    for token in range(5):
        table.learn(100, [token], [token + 10])
    assert table.propose(100, 0, 1).match == 1 and table.propose(100, 4, 1).match == 2


def test_it_helps_and_changes_no_text(looping_model: Path, tiny_home: Path) -> None:
    runtime: Runtime = load_runtime(EngineConfig(model=str(looping_model)), lambda message, fraction: None)

    def run(draft: Any) -> Outcome:
        # Two tokens of prompt: nothing to look up at first.
        request = GenerationRequest(
            (5, 9), max_new_tokens=24, draft=draft, use_cache=False, digest_logits=True
        )
        return runtime.run(request, lambda chunk: None, lambda: None)

    plain, first, second = run("none"), run("auto"), run("auto")
    assert plain.token_ids == first.token_ids == second.token_ids
    assert plain.logits_sha256 == first.logits_sha256 == second.logits_sha256
    assert second.forwards < first.forwards <= plain.forwards
    assert any(step.source == "recycling" and step.accepted > 0 for step in second.steps)


def test_it_is_forgotten_with_the_last_document(looping_model: Path, tiny_home: Path) -> None:
    runtime = load_runtime(EngineConfig(model=str(looping_model)), lambda message, fraction: None)

    def ask(document: str) -> None:
        request = GenerationRequest((5, 9), document=document, max_new_tokens=8, draft="auto")
        runtime.run(request, lambda chunk: None, lambda: None)

    def knows() -> bool:
        return bool(runtime.generator.recycling.propose(5, 9, 4).tokens)

    ask("a.py")
    ask("b.py")
    assert runtime.slots.documents == {"a.py", "b.py"}
    runtime.generator.recycling.learn(5, [9], [7])
    runtime.close_document("a.py")
    assert knows()
    runtime.close_document("b.py")
    assert not knows() and not runtime.slots.documents
