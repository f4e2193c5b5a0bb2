"""The simulator counts what a replayed answer takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.base import Prompt
from bench.speculation.prompts import SetPrompt
from bench.speculation.recordings import Recording, load, record, save
from bench.speculation.simulate import COSTS, Costs, Tally, lines, simulate, tree_way
from inference.api import EngineConfig, GenerationRequest
from inference.runtime import load_runtime


def _recording(output: list[int], prompt: list[int]) -> Recording:
    top = tuple((token, 1, 2) for token in output)
    return Recording("set", 0, tuple(prompt), tuple(output), top, len(output))


_COPY = _recording(list(range(140, 180)), list(range(100, 200)) + list(range(130, 140)))
_FRESH = _recording(list(range(500, 540)), list(range(100, 200)))


def test_recordings_survive_the_disk(tmp_path: Path) -> None:
    save([_COPY, _FRESH], tmp_path / "recordings.jsonl")
    assert load(tmp_path / "recordings.jsonl") == [_COPY, _FRESH]


def test_a_recording_is_what_plain_decoding_says(looping_model: Path, tiny_home: Path) -> None:
    runtime = load_runtime(
        EngineConfig(model=str(looping_model), prefill_chunk=3), lambda message, fraction: None
    )
    prompt = SetPrompt("fim", 3, Prompt((5, 9, 7, 11), ""), 12, frozenset())
    request = GenerationRequest(prompt.prompt.ids, max_new_tokens=12, draft="none", use_cache=False)
    plain = runtime.run(request, lambda chunk: None, lambda: None).token_ids
    stopped = replace(prompt, stop_ids=frozenset(plain[4:5]))
    whole, short = record(runtime, [prompt, stopped])
    assert whole.output == plain and (whole.set, whole.item, whole.prompt) == ("fim", 3, (5, 9, 7, 11))
    assert tuple(row[0] for row in whole.top) == whole.output
    assert short.output == plain[: plain.index(plain[4]) + 1]


def test_costs_are_straight_between_the_entries() -> None:
    costs = Costs({1: 10.0, 3: 20.0})
    assert [costs(rows) for rows in (1, 2, 3, 6)] == [10.0, 15.0, 20.0, 40.0]
    for table in ({2: 10.0}, {0: 1.0, 1: 1.0}, {1: 0.0}):
        with pytest.raises(ValueError, match="1 row"):
            Costs(table)


@pytest.mark.parametrize("make", [tree_way])
def test_a_copy_is_fast_and_new_text_costs_nothing(make: object) -> None:
    assert callable(make)
    costs = Costs(COSTS)
    copy = simulate([_COPY], make(costs), costs)["set"]
    assert copy.tokens == len(_COPY.output) - 1, "the first token comes from the prompt"
    assert copy.drafted >= copy.tokens - copy.forwards
    assert copy.forwards < 6 and copy.speedup > 3
    fresh = simulate([_FRESH], make(costs), costs)["set"]
    assert fresh.forwards == fresh.tokens == 39 and fresh.speedup == pytest.approx(1.0, abs=0.02)


def test_texts_of_other_files_are_used() -> None:
    costs = Costs(COSTS)
    alone = simulate([_FRESH], tree_way(costs), costs)["set"]
    helped = simulate([_FRESH], tree_way(costs, [range(480, 560)]), costs)["set"]
    assert helped.forwards < alone.forwards


def test_the_table_names_drafters_and_sets() -> None:
    text = lines({"tree": {"fim": Tally(20, 10, 30, 200.0, 260.0)}})
    assert " ".join(text.split()) == "tree fim 1.300 x plain 2.00 tokens per forward 3.00 drafted"
