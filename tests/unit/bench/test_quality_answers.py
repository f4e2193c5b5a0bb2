"""What each variant leaves out, and that all candidates answer the same tasks by turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.quality.answers import (
    Candidate,
    Given,
    Infilled,
    by_turns,
    infill_candidates,
)
from bench.quality.datasets import EditTask, InfillTask
from bench.quality.draftline_infill import VARIANTS, DraftlineInfill, NoFillIn, oracle_cut
from bench.quality.judge import Judgement, judge
from inference.api import FinishReason, GenerationRequest
from inference.drafting.recycling import RecyclingTable
from inference.generation import Outcome
from inference.runtime import Runtime
from inference.stops import StopChecker
from lsp_server.completion.options import CompletionOptions
from tests.fake_engine import QWEN_SPECIALS, FakeCodec
from tests.unit.bench.quality_tasks import TEST

LINE = InfillTask("line/0", "def double(n):\n", "\n    return result\n", "    result = n + n", TEST, "double")
SPAN = InfillTask("span/0", "def double(n):\n    return n", "\n", " * 2", TEST, "double")
EDIT = EditTask("edit/0", "Triple.", "x = n * 2", "x = n * 3", "def check(): pass")


class ScriptedRuntime:
    """A loaded model that always says the same; stop rules are the real ones."""

    def __init__(self, text: str, codec: FakeCodec | None = None) -> None:
        self.tokenizer = codec or FakeCodec()
        self.context = 4096
        self.options = SimpleNamespace(numerics="int8", mixed="")
        self.prepared = SimpleNamespace(source="scripted")
        self.generator = SimpleNamespace(recycling=RecyclingTable())
        self.requests: list[GenerationRequest] = []
        self._text = text

    def run(self, request: GenerationRequest, emit: object, interrupted: object) -> Outcome:
        self.requests.append(request)
        checker = StopChecker(request.stops)
        reason = checker.push(self._text[: request.max_new_tokens])
        if reason is None:
            checker.finish()
            cut = len(self._text) > request.max_new_tokens
            reason = FinishReason.LENGTH if cut else FinishReason.STOP_TOKEN
        return Outcome(text=checker.text, token_ids=tuple(map(ord, checker.text)), reason=reason)

    def infill(self, **options: Any) -> DraftlineInfill:
        return DraftlineInfill(cast(Runtime, self), CompletionOptions(**options))

    def shown(self) -> str:
        return self.tokenizer.show(self.requests[-1].prompt)


def _text(raw: str, variant: str, task: InfillTask = LINE) -> str:
    return ScriptedRuntime(raw).infill().candidate(VARIANTS[variant]).answer(task).text


RUNS_ON = "    result = n + n\n    return result\n\ndef other():\n    pass\n"


def test_all_is_what_the_server_shows() -> None:
    runtime = ScriptedRuntime(RUNS_ON)
    candidate = runtime.infill().candidate(VARIANTS["psm/all"])
    given = candidate.answer(LINE)
    assert (given.text, given.finish_reason) == ("    result = n + n", "suffix")
    assert given.tokens == len("    result = n + n") and given.ms > 0
    assert (candidate.system, candidate.numerics, candidate.variant) == ("draftline", "int8", "psm/all")
    assert runtime.shown() == (
        "<|fim_prefix|>def double(n):\n<|fim_suffix|>\n    return result\n<|fim_middle|>"
    )
    assert not runtime.requests[0].use_cache


def test_without_filters_the_stop_rules_stay() -> None:
    fenced = f"```python\n{RUNS_ON}"
    assert _text(fenced, "psm/all") == "    result = n + n"
    assert _text(fenced, "psm/none") == "```python\n    result = n + n"


def test_without_stops_the_text_runs_on() -> None:
    assert _text(RUNS_ON, "psm/no-stops") == RUNS_ON
    given = (
        ScriptedRuntime("x" * 99).infill(max_new_tokens=9).candidate(VARIANTS["psm/no-stops"]).answer(LINE)
    )
    assert (given.text, given.finish_reason) == ("x" * 9, "length")


def test_the_oracle_cuts_the_unstopped_text() -> None:
    assert _text(RUNS_ON, "psm/oracle") == LINE.middle


def test_a_dropped_suggestion_is_an_empty_answer_with_a_reason() -> None:
    given = ScriptedRuntime("  \n  ").infill().candidate(VARIANTS["psm/all"]).answer(LINE)
    assert (given.text, given.finish_reason) == ("", "filtered:blank")


def test_the_prefix_goes_behind_the_marker() -> None:
    runtime = ScriptedRuntime(" * 2")
    runtime.infill().candidate(VARIANTS["spm/all"]).answer(SPAN)
    assert runtime.shown() == "<|fim_prefix|><|fim_suffix|>\n<|fim_middle|>def double(n):\n    return n"


TAIL = "    return b\n"
THREE = replace(SPAN, prompt="def f(n):\n    a = n\n    b = a\n    c = b\n", suffix=TAIL)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("spm", f"<|fim_prefix|><|fim_suffix|>{TAIL}<|fim_middle|>{THREE.prompt}"),
        ("lines-in-middle", f"<|fim_prefix|><|fim_suffix|>{TAIL}<|fim_middle|>{THREE.prompt}"),
        ("line-in-middle", f"<|fim_prefix|>{THREE.prompt}<|fim_suffix|>{TAIL}<|fim_middle|>"),
    ],
)
def test_orders(order: str, expected: str) -> None:
    runtime = ScriptedRuntime(" * 2")
    infill = runtime.infill()
    infill.candidate(VARIANTS["lines-in-middle/all"]).answer(SPAN)  # another task leaves no anchor
    infill.candidate(VARIANTS[f"{order}/all"]).answer(replace(THREE, id=f"three/{order}"))
    assert runtime.shown() == expected
    assert {request.document for request in runtime.requests} == {"quality.py"}


def test_variants_of_one_generation_share_it() -> None:
    runtime = ScriptedRuntime(RUNS_ON)
    infill = runtime.infill()
    for variant in VARIANTS.values():
        infill.candidate(variant).answer(LINE)
    assert len(runtime.requests) == 14  # seven orders, with and without stop rules
    infill.candidate(VARIANTS["psm/all"]).answer(replace(LINE, id="line/1"))
    assert len(runtime.requests) == 15


def test_a_model_that_cannot_fill_in_is_refused() -> None:
    with pytest.raises(NoFillIn, match="--sets edit"):
        ScriptedRuntime("", FakeCodec(QWEN_SPECIALS[:3])).infill()


@pytest.mark.parametrize(
    ("raw", "middle", "cut"),
    [
        ("x = 1\ny = 2\n", "x = 1", "x = 1"),
        ("x = 1\ny = 2\n", "x = 1\n", "x = 1\n"),
        ("x = 1y", "x = 1\n", "x = 1"),
        ("  x = 1 + 2", "x = 1", "  x = 1"),
        ("x = 1 + 2", "    x = 1", "x = 1"),
        ("a\nb\nc\n", "x", "a"),
        ("a\nb\nc\n", "x\ny", "a\nb"),
        ("a", "x\ny", "a"),
        ("", "x", ""),
    ],
)
def test_where_the_oracle_cuts(raw: str, middle: str, cut: str) -> None:
    assert oracle_cut(raw, middle) == cut


class FakePeer:
    """Fills every gap with the name of the variant."""

    name = "peer"
    variants = ("long", "short")

    def start(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"numerics": "q8_0"}

    def infill(self, prefix: str, suffix: str, variant: str) -> Infilled:
        assert (prefix, suffix) == (LINE.prompt, LINE.suffix)
        return Infilled(variant, 7.0, None)

    def stop(self) -> None: ...


def test_a_peer_is_asked_in_all_its_variants() -> None:
    candidates = infill_candidates(FakePeer())
    assert [(each.system, each.numerics, each.variant) for each in candidates] == [
        ("peer", "q8_0", "long"),
        ("peer", "q8_0", "short"),
    ]
    assert [each.answer(LINE) for each in candidates] == [Given("long", 7.0, None), Given("short", 7.0, None)]


def test_an_answer_is_judged_once_and_reported_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def judge_once(task: InfillTask, text: str, *, tests: bool) -> Judgement:
        judged.append(text)
        return judge(task, text, tests=tests)

    monkeypatch.setattr("bench.quality.answers.judge", judge_once)
    candidates = [_candidate("a", []), _candidate("b", []), _candidate("c", [], "    result = n")]
    tasks = [LINE, replace(LINE, id="line/1")]
    answers = list(by_turns("single-line", tasks, candidates, tests=False, pause_s=0))
    assert sorted(judged) == sorted([LINE.middle, "    result = n"] * 2)
    assert [each.exact for each in answers if each.system != "c"] == [True] * 4
    assert [each.exact for each in answers if each.system == "c"] == [False] * 2


def _candidate(name: str, log: list[str], text: str = "") -> Candidate[InfillTask]:
    def answer(task: InfillTask) -> Given:
        log.append(f"{name} {task.id}")
        return Given(text or task.middle, 1.0, 3, "stop-token")

    return Candidate(name, "int8", "v", answer)


def test_every_task_goes_to_all_before_the_next_one_and_each_begins_in_turn() -> None:
    log: list[str] = []
    tasks = [replace(LINE, id=str(number)) for number in range(3)]
    candidates = [_candidate("a", log), _candidate("b", log)]
    answers = list(by_turns("single-line", tasks, candidates, tests=False, pause_s=0))
    assert log == ["a 0", "b 0", "b 1", "a 1", "a 2", "b 2"]
    assert [(each.system, each.item) for each in answers] == [tuple(entry.split()) for entry in log]
    assert {each.set for each in answers} == {"single-line"}


def test_a_right_answer_counts_and_a_wrong_one_does_not() -> None:
    candidates = [_candidate("right", []), _candidate("wrong", [], "    result = n")]
    right, wrong = by_turns("single-line", [LINE], candidates, tests=True, pause_s=0)
    assert (right.exact, right.similarity, right.passed, right.failure) == (True, 1.0, True, "")
    assert (wrong.exact, wrong.passed, wrong.failure, wrong.valid) == (False, False, "AssertionError", True)
    assert 0 < wrong.similarity < 1
    assert (right.tokens, right.ms, right.finish_reason, right.numerics) == (3, 1.0, "stop-token", "int8")


def test_there_is_a_pause_between_systems_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep: Callable[[float], None] = pauses.append
    monkeypatch.setattr(time, "sleep", sleep)
    candidates = [_candidate("a", []), _candidate("a", []), _candidate("b", [])]
    list(by_turns("single-line", [LINE], candidates, tests=False, pause_s=9))
    assert pauses == [9]


def test_when_time_is_up_no_further_task_is_begun() -> None:
    log: list[str] = []
    tasks = [replace(LINE, id=str(number)) for number in range(3)]
    candidates = [_candidate("a", log), _candidate("b", log)]
    assert len(list(by_turns("single-line", tasks, candidates, tests=False, seconds=0, pause_s=0))) == 2
    assert log == ["a 0", "b 0"]
