"""Replaying a recorded answer gives the text that a run with the stop rules gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.quality.recordings import (
    Recording,
    StaleRecording,
    load,
    prompt_sha256,
    record,
    recorded,
    replay,
    save,
)
from inference.api import Below, EngineConfig, FinishReason, GenerationRequest, StopRules
from inference.runtime import Runtime, load_runtime

REQUEST = GenerationRequest(prompt=(1, 2, 3), max_new_tokens=9, stops=StopRules(token_ids=frozenset({7})))


def _made_up(*pieces: str, reason: str = "stop-token") -> Recording:
    ids = tuple(range(10, 10 + len(pieces)))
    ids = (*ids, 7) if reason == "stop-token" else ids
    more = ("", "") if reason == "stop-token" else ("",)
    return Recording("single-line", "line/0", prompt_sha256(REQUEST), ids, (*pieces, *more), reason, 9)


def _with(stops: StopRules) -> GenerationRequest:
    return replace(REQUEST, stops=replace(stops, token_ids=REQUEST.stops.token_ids))


RULES = [
    (StopRules(), "a = 1\n    b = 2\n", FinishReason.STOP_TOKEN, 5),
    (StopRules(single_line=True), "a = 1", FinishReason.LINES, 3),
    (StopRules(suffix="\n    b = 2"), "a = 1", FinishReason.SUFFIX, 4),
    (StopRules(strings=("b",)), "a = 1\n    ", FinishReason.STOP_STRING, 4),
    (StopRules(max_lines=2), "a = 1\n    b = 2", FinishReason.LINES, 4),
]


@pytest.mark.parametrize(("stops", "text", "reason", "tokens"), RULES)
def test_replay(stops: StopRules, text: str, reason: FinishReason, tokens: int) -> None:
    recording = _made_up("a", " = 1", "\n    ", "b = 2\n")
    result = replay(recording, _with(stops))
    assert (result.text, result.finish_reason, len(result.token_ids)) == (text, reason, tokens)
    assert recording.text == "a = 1\n    b = 2\n"


def test_the_end_of_the_recording_is_an_end_as_any_other() -> None:
    recording = _made_up("x = 1\n", "    return lo", reason="length")
    result = replay(recording, _with(StopRules(suffix="\n    return lo\n")))
    assert (result.text, result.finish_reason) == ("x = 1", FinishReason.LENGTH)


def test_another_prompt_is_refused() -> None:
    recording = _made_up("a")
    for changed in ({"prompt": (1, 2)}, {"heal": "x"}, {"max_new_tokens": 8}, {"seed": 1}):
        with pytest.raises(StaleRecording, match="line/0"):
            replay(recording, replace(REQUEST, **changed))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    assert list(load(path)) == []
    first, second = _made_up("a", "\u00e9\n"), _made_up("b", reason="length")
    save([first], path)
    save([second], path)
    assert list(load(path)) == [first, second]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"set": "single')  # killed while writing
    assert list(load(path)) == [first, second]


@pytest.fixture(scope="module")
def runtime(looping_model: Path, tiny_home_path: Path) -> Iterator[Runtime]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tiny_home_path))
        yield load_runtime(EngineConfig(str(looping_model), use_cache=False), lambda message, part: None)


PROMPTS = ["def f(x):\n    return", "class A:\n    def g(self):\n        x = ", "for i in range(", "import"]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("heal", ["", "re", "\n    "])
def test_replaying_is_running(runtime: Runtime, prompt: str, heal: str) -> None:
    ids = tuple(runtime.tokenizer.encode(prompt))
    request = GenerationRequest(ids, heal=heal, max_new_tokens=48, use_cache=False)
    recording = record(runtime, request)
    whole = recording.text
    assert len(recording.token_ids) >= 48
    middle = len(whole) // 2
    ends = frozenset({recording.token_ids[30]})
    rules = [
        StopRules(),
        StopRules(single_line=True),
        StopRules(max_lines=2),
        StopRules(strings=(whole[middle : middle + 3],)),
        StopRules(suffix=whole[middle:]),
        StopRules(suffix="\n" + whole[middle:], min_indent=4, first_line_scope=True),
        StopRules(below=Below("    ", tuple(filter(str.strip, whole[middle:].split("\n")))), max_lines=5),
        StopRules(strings=(whole[-2:],)),
    ]
    texts = set()
    for stops in rules:
        for token_ids in (frozenset[int](), ends):
            asked = replace(request, stops=replace(stops, token_ids=token_ids))
            answer = record(runtime, replace(request, stops=StopRules(token_ids=token_ids)))
            outcome = runtime.run(asked, lambda chunk: None, lambda: None)
            result = replay(answer, asked)
            assert (result.text, result.token_ids, result.finish_reason) == (
                outcome.text,
                outcome.token_ids,
                outcome.reason,
            )
            texts.add(result.text)
    assert len(texts) > 2  # the rules did something


def test_characters_of_several_tokens(runtime: Runtime) -> None:
    """A token without text of its own, and bytes that never become a character."""
    ids = tuple(runtime.tokenizer.encode("a\u00e9\U0001f600"))
    assert len(ids) > 3
    request = replace(REQUEST, heal="a")
    outcome = runtime.run(request, lambda chunk: None, lambda: None)
    for end, text in ((len(ids), "\u00e9\U0001f600"), (len(ids) - 1, "\u00e9\ufffd")):
        recording = recorded(runtime.tokenizer, request, replace(outcome, token_ids=ids[:end]))
        assert recording.text == text and len(recording.pieces) == end + 1
