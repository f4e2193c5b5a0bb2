"""Token recycling: chains of what the model chose before, and never another text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.api import EngineConfig, GenerationRequest
from inference.drafting import recycling
from inference.drafting.recycling import RecyclingTable
from inference.generation import Outcome
from inference.runtime import Runtime, load_runtime


def test_pairs_and_tokens_are_known_by_what_came_last() -> None:
    table = RecyclingTable()
    assert table.after_pair(1, 2) == table.after_token(2) == ()
    table.learn(1, [2, 3, 4], [3, 4, 5])
    assert table.after_pair(1, 2) == (3,) and table.after_pair(2, 3) == (4,)
    assert table.after_pair(9, 3) == () and table.after_token(3) == (4,)
    table.learn(7, [3], [8])
    assert table.after_pair(2, 3) == (4,), "the pair knows better"
    assert table.after_token(3) == (8, 4), "the newest choice behind a token comes first"


def test_a_rejected_draft_teaches_too() -> None:
    table = RecyclingTable()
    table.learn(1, [2, 50], [3, 51])  # 50 was drafted behind 2, the model wanted 3
    assert table.after_pair(1, 2) == (3,)
    assert table.after_pair(2, 50) == (51,)


def test_the_oldest_pairs_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycling, "MAX_PAIRS", 4)
    table = RecyclingTable()
    for token in range(5):
        table.learn(100, [token], [token + 10])
    assert table.after_pair(100, 0) == () and table.after_pair(100, 4) == (14,)


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
        return bool(runtime.generator.recycling.after_pair(5, 9))

    ask("a.py")
    ask("b.py")
    assert runtime.slots.documents == {"a.py", "b.py"}
    runtime.generator.recycling.learn(5, [9], [7])
    runtime.close_document("a.py")
    assert knows()
    runtime.close_document("b.py")
    assert not knows() and not runtime.slots.documents
