"""Edits in the quality bench: each way decodes the server's prompt, and reading it loses nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from bench.peers.base import Decoded, Prompt
from bench.quality.answers import by_turns
from bench.quality.datasets import EditTask
from bench.quality.edit_prompt import edit_prompt
from bench.quality.edits import edit_candidates, edit_room, peer_candidates
from inference.api import Chunk, GenerationRequest
from inference.generation import Outcome
from inference.runtime import Runtime
from tests.fake_engine import FakeCodec
from tests.unit.bench.test_quality_answers import ScriptedRuntime

CODE = "def triple(n):\n    a = n\n    b = a + n\n    return b"
EDIT = EditTask("edit/0", "Triple.", CODE, CODE.replace("b", "b + n"), "def check(): assert triple(2) == 6")
METHOD = EditTask(
    "edit/1",
    "Triple.",
    "    def f(self, n):\n        return n * 2",
    "    def f(self, n):\n        return n * 3",
    "def check(): assert A().f(2) == 6",
    "class A:\n{{Code}}",
)
ANSWER = CODE.replace("return b", "return b + n") + "\n```\nThat is all."


class StreamingRuntime(ScriptedRuntime):
    """Hands its text out character by character, until it is interrupted."""

    def run(self, request: GenerationRequest, emit: Any, interrupted: Any) -> Outcome:
        outcome = super().run(request, emit, interrupted)
        for character in outcome.text:
            if interrupted() is not None:
                break
            emit(Chunk(character, ()))
        return outcome


def _ask(runtime: StreamingRuntime, task: EditTask = EDIT) -> dict[str, Any]:
    candidates = edit_candidates(cast(Runtime, runtime), ("auto", "none"))
    return {each.variant: each for each in by_turns("edit", [task], candidates, tests=True, pause_s=0)}


def test_all_ways_to_an_edit_pass_what_the_model_says() -> None:
    runtime = StreamingRuntime(ANSWER)
    answers = _ask(runtime)
    assert list(answers) == ["parsed, auto", "raw, auto", "parsed, none", "raw, none"]
    for each in answers.values():
        assert each.passed and each.text == CODE.replace("return b", "return b + n")
        assert each.decode_ms is not None and each.forwards is not None
    assert answers["raw, auto"].first_hunk_ms is None
    assert answers["parsed, auto"].shown_behind is None, "the last line is the one that changes"
    assert 0 < answers["parsed, auto"].first_hunk_ms <= answers["parsed, auto"].ms
    parsed, raw = runtime.requests[:2]
    assert raw.prompt == parsed.prompt == edit_prompt(FakeCodec(), EDIT.instruction, EDIT.code).ids
    assert raw.stops.strings == () and raw.source_hint is None and not raw.use_cache
    assert parsed.stops.strings == ("\n```",) and parsed.source_hint is not None and not parsed.use_cache
    assert [request.draft for request in runtime.requests] == ["auto", "auto", "none", "none"]


def test_how_long_a_change_stays_unseen() -> None:
    answers = _ask(StreamingRuntime(CODE.replace("a = n", "a = n * 1") + "\n```"))
    assert answers["parsed, none"].shown_behind == 0 and answers["raw, none"].shown_behind is None
    # A line that stands further down may be where the answer goes on: the next one tells.
    code = "def f(x):\n    first(x)\n    y\n    return second(x)"
    said = code.replace("    first(x)\n", "    y\n    other(x)\n") + "\n```"
    task = replace(EDIT, code=code, test="def check(): pass")
    assert _ask(StreamingRuntime(said), task)["parsed, none"].shown_behind == len("    other(x)\n")


def test_parsed_code_has_the_indentation_of_what_it_replaces() -> None:
    answers = _ask(StreamingRuntime("def f(self, n):\n    return n * 3\n```"), METHOD)
    assert answers["parsed, none"].passed and answers["parsed, none"].text == METHOD.solution
    assert not answers["raw, none"].passed


@pytest.mark.parametrize(("said", "reason"), [(CODE + "\n```", "unchanged"), ("", "no-code")])
def test_no_edit_leaves_the_code(said: str, reason: str) -> None:
    answer = _ask(StreamingRuntime(said))["parsed, none"]
    assert (answer.text, answer.finish_reason, answer.first_hunk_ms) == (CODE, reason, None)


class FakeDecoder:
    """Says one thing and keeps what it was asked."""

    name, modes = "llama-server q8_0", ("plain", "ngram-simple", "ngram-map-k", "ngram-cache")

    def __init__(self) -> None:
        self.asked: list[tuple[Prompt, str, int, frozenset[int]]] = []

    def describe(self) -> dict[str, Any]:
        return {"numerics": "q8_0"}

    def decode(self, prompt: Prompt, mode: str, max_tokens: int, stop_ids: frozenset[int]) -> Decoded:
        self.asked.append((prompt, mode, max_tokens, stop_ids))
        return Decoded(ANSWER, (), 5, 9, 0, 1.0, 2.0, 3.0, None, None, 4, "stop-token")


def test_a_peer_gets_the_same_prompt() -> None:
    decoder, codec = FakeDecoder(), FakeCodec()
    candidates = peer_candidates(cast(Any, decoder), codec)
    answer, *drafted = by_turns("edit", [EDIT], candidates, tests=True, pause_s=0)
    assert (answer.variant, answer.passed, answer.ms, answer.forwards) == ("raw, plain", True, 5.0, 4)
    assert [each.variant for each in drafted] == ["raw, ngram-simple", "raw, ngram-cache"]
    (prompt, mode, limit, stop_ids), *others = decoder.asked
    assert [drafting for _, drafting, _, _ in others] == ["ngram-simple", "ngram-cache"]
    assert prompt.ids == edit_prompt(codec, EDIT.instruction, EDIT.code).ids
    assert prompt.text == codec.show(prompt.ids)
    assert mode == "plain" and codec.special("<|im_end|>") in stop_ids
    assert edit_room(codec, [EDIT]) == len(prompt.ids) + limit
