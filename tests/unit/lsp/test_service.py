"""The pipeline with an engine that says what it is told to."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from inference.api import EngineState, EngineStatus
from inference.errors import QueueFull
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import without_broken_end
from lsp_server.completion.reasons import Reason
from lsp_server.completion.service import Answer, CompletionService
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Change, Point
from tests.fake_engine import FakeCodec, FakeEngine

URI = "file:///work/x.py"
OPTIONS = CompletionOptions()


class Bench:
    """A service over one open document."""

    def __init__(self, text: str, engine: FakeEngine, *, language: str = "python") -> None:
        self.engine = engine
        self.store = DocumentStore()
        self.store.open(URI, 1, language, text)
        self.service = CompletionService(self.store, lambda: engine, lambda: engine.status)
        self.version = 1
        engine.start()

    async def ask(self, line: int, column: int, **more: object) -> Answer:
        options = more.pop("options", OPTIONS)
        return await self.service.complete(URI, Point(line, column), options, **more)  # type: ignore[arg-type]

    def type(self, line: int, column: int, text: str) -> None:
        self.version += 1
        at = Point(line, column)
        self.store.change(URI, self.version, [Change(text, at, at)])


def text_of(answer: Answer) -> str:
    assert answer.suggestion is not None, answer.reason
    return answer.suggestion.text


async def test_a_suggestion_at_the_cursor() -> None:
    bench = Bench("def f():\r\n    ret\r\nx\r\n", FakeEngine(answer="urn 1"))
    answer = await bench.ask(1, 7)
    assert text_of(answer) == "urn 1"
    assert answer.suggestion is not None
    assert (answer.suggestion.range.start, answer.suggestion.range.end) == (7, 7)
    request = bench.engine.requests[0]
    shown = bench.engine.codec.show(request.prompt)
    assert shown == "<|fim_prefix|><|fim_suffix|>\nx\n<|fim_middle|>def f():\n    ret"
    assert request.stops.suffix == "\nx\n"
    assert not request.stops.single_line
    assert request.stops.max_lines == 10
    assert request.document == URI


async def test_single_line_where_words_follow_the_cursor() -> None:
    bench = Bench("a = b + c", FakeEngine(answer="x\ny"))
    assert text_of(await bench.ask(0, 4)) == "x"
    assert bench.engine.requests[0].stops.single_line
    bench = Bench("f(a)", FakeEngine(answer="x\ny"))
    await bench.ask(0, 3)
    assert not bench.engine.requests[0].stops.single_line


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("", Reason.EMPTY), ("  \n ", "filtered:blank"), ("```\n", "filtered:fences")],
)
async def test_reasons(answer: str, reason: str) -> None:
    bench = Bench("x", FakeEngine(answer=answer))
    given = await bench.ask(0, 1)
    assert given.suggestion is None
    assert given.reason == reason
    assert not given.superseded


async def test_reasons_of_the_engine() -> None:
    engine = FakeEngine()
    bench = Bench("x", engine)
    for state, reason in (
        (EngineState.LOADING, Reason.LOADING),
        (EngineState.FAILED, Reason.FAILED),
        (EngineState.STOPPED, Reason.STOPPED),
    ):
        engine._status = EngineStatus(state)
        assert (await bench.ask(0, 1)).reason == reason
    engine._status = EngineStatus(EngineState.READY)

    def full(request: object) -> None:
        raise QueueFull("32 requests wait.", "Try again.")

    engine.submit = full  # type: ignore[assignment,method-assign]
    assert (await bench.ask(0, 1)).reason == "queue-full"


async def test_a_refusal_that_comes_after_an_edit_hides_nothing() -> None:
    engine = FakeEngine()
    bench = Bench("x", engine)
    bench.service.debounce.edited(URI)
    asked = asyncio.ensure_future(bench.ask(0, 1, debounce_ms=50))
    await asyncio.sleep(0)
    bench.type(0, 1, "y")
    engine._status = EngineStatus(EngineState.LOADING)
    answer = await asked
    assert answer.reason == Reason.LOADING and answer.superseded


async def test_no_fim() -> None:
    bench = Bench("x", FakeEngine(codec=FakeCodec(("<|endoftext|>",))))
    assert (await bench.ask(0, 1)).reason == Reason.NO_FIM


async def test_unknown_document_and_refusal() -> None:
    bench = Bench("x", FakeEngine())
    with pytest.raises(Withheld):
        await bench.service.complete("file:///other", Point(0, 0), OPTIONS)
    answer = await bench.ask(0, 1, allowed=lambda snapshot: Reason.DISABLED)
    assert answer.reason == Reason.DISABLED
    assert bench.engine.requests == []


async def test_a_newer_request_supersedes_at_once() -> None:
    bench = Bench("x = ", FakeEngine(answer="a" * 100, step_seconds=0.02))
    old = asyncio.ensure_future(bench.ask(0, 4))
    await asyncio.sleep(0.05)
    bench.type(0, 4, "y")
    began = time.monotonic()
    new = asyncio.ensure_future(bench.ask(0, 5, options=replace(OPTIONS, max_new_tokens=2)))
    answer = await old
    assert time.monotonic() - began < 1.5, "the whole answer takes 2 s"
    assert answer.superseded and answer.reason == Reason.SUPERSEDED
    assert text_of(await new) == "aa"
    first = bench.engine.generations[0]
    await asyncio.wrap_future(first.future)
    assert first.steps < 80


async def test_cancelling_stops_the_decoding() -> None:
    bench = Bench("x = ", FakeEngine(answer="a" * 100, step_seconds=0.02))
    task = asyncio.ensure_future(bench.ask(0, 4))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    generation = bench.engine.generations[0]
    await asyncio.wrap_future(generation.future)
    assert generation.steps < 80


async def test_debounce_waits_only_what_is_left_and_can_be_superseded() -> None:
    bench = Bench("x = ", FakeEngine(answer="a"))
    bench.service.debounce.edited(URI)
    began = time.monotonic()
    assert text_of(await bench.ask(0, 4, debounce_ms=60)) == "a"
    assert time.monotonic() - began > 0.04
    bench.service.suggestions.clear()
    await bench.ask(0, 4, debounce_ms=60)
    bench.service.suggestions.clear()
    bench.service.debounce.edited(URI)
    waiting = asyncio.ensure_future(bench.ask(0, 4, debounce_ms=5000))
    await asyncio.sleep(0.01)
    requests = len(bench.engine.requests)
    bench.service.closed(URI)
    assert (await waiting).superseded
    assert len(bench.engine.requests) == requests


async def test_an_answer_for_an_older_text_is_null_and_kept_for_typing_along() -> None:
    bench = Bench("x = ", FakeEngine(answer="value", step_seconds=0.01))
    task = asyncio.ensure_future(bench.ask(0, 4))
    await asyncio.sleep(0.02)
    bench.type(0, 4, "v")
    answer = await task
    assert answer.superseded and answer.reason == Reason.STALE
    again = await bench.ask(0, 5)
    assert again.cached
    assert text_of(again) == "alue"


async def test_typing_along_needs_no_engine() -> None:
    bench = Bench("def f():\n    \nrest\n", FakeEngine(answer="return 1\n    # done"))
    await bench.ask(1, 4)
    text = "return 1\n    # done"
    line, column = 1, 4
    for at, char in enumerate(text[:-1]):
        bench.type(line, column, char)
        line, column = (line + 1, 0) if char == "\n" else (line, column + 1)
        answer = await bench.ask(line, column)
        assert answer.cached, (at, char)
        assert text_of(answer) == text[at + 1 :]
    assert len(bench.engine.requests) == 1


async def test_typing_along_a_suggestion_that_replaces_brackets() -> None:
    bench = Bench("foo()\n", FakeEngine(answer="f(a) + b) + 1"))
    options = replace(OPTIONS, replaces_rest=True)
    first = await bench.ask(0, 4, options=options)
    assert first.suggestion is not None
    assert (first.suggestion.range.start, first.suggestion.range.end) == (4, 5)
    # Behind "f(" the first closing bracket of what is left is the suggestion's own.
    for at, char in enumerate("f(a) + b"):
        bench.type(0, 4 + at, char)
        answer = await bench.ask(0, 5 + at, options=options)
        assert answer.cached and answer.suggestion is not None
        assert (answer.suggestion.range.start, answer.suggestion.range.end) == (5 + at, 6 + at)
    bench.type(0, 12, ")")
    assert not (await bench.ask(0, 13, options=options)).cached, "there are two brackets now"


async def test_nothing_for_an_older_text_is_null() -> None:
    bench = Bench("x = ", FakeEngine(answer="```\n", step_seconds=0.01))
    task = asyncio.ensure_future(bench.ask(0, 4))
    await asyncio.sleep(0.02)
    bench.type(0, 4, "v")
    answer = await task
    assert answer.superseded and answer.reason == "filtered:fences"


async def test_typing_something_else_or_elsewhere_asks_the_engine() -> None:
    bench = Bench("a\n    \nrest\n", FakeEngine(answer="return 1"))
    await bench.ask(1, 4)
    bench.type(1, 4, "x")
    assert not (await bench.ask(1, 5)).cached
    bench = Bench("a\n    \nrest\n", FakeEngine(answer="return 1"))
    await bench.ask(1, 4)
    bench.type(2, 0, "changed ")
    assert not (await bench.ask(1, 4)).cached, "the text after the cursor is another one"
    bench.type(0, 0, "changed ")
    assert not (await bench.ask(1, 4)).cached


async def test_selected_entry_is_extended() -> None:
    bench = Bench("import os\nos.pa", FakeEngine(answer="(1)"))
    answer = await bench.ask(1, 5, selected=(Point(1, 3), Point(1, 5), "path"))
    assert text_of(answer) == "path(1)"
    assert answer.suggestion is not None
    assert (answer.suggestion.range.start, answer.suggestion.range.end) == (3, 5)
    assert "<|fim_middle|>import os\nos.path" in bench.engine.codec.show(bench.engine.requests[0].prompt)


async def test_a_two_megabyte_file_has_a_bounded_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench("value = compute(1)\n" * 110_000, FakeEngine(answer="x"))
    codec = bench.engine.codec
    encode, encoded = codec.encode, []
    monkeypatch.setattr(codec, "encode", lambda text: encoded.append(len(text)) or encode(text))
    await bench.ask(55_000, 3)
    assert sum(encoded) < 50_000, "only a neighbourhood of the cursor may be tokenised"
    assert len(bench.engine.requests[0].prompt) + 128 <= bench.engine.context
    bench.type(55_000, 3, "a")
    await bench.ask(55_000, 4)
    first, second = (request.prompt for request in bench.engine.requests)
    assert first[:450] == second[:450]


async def test_half_a_character_at_the_end_is_not_shown() -> None:
    bench = Bench("x", FakeEngine(answer="a\ufffd"))
    assert text_of(await bench.ask(0, 1)) == "a"


@pytest.mark.parametrize("half", ["\ufffd", "\ud83d", "\udc00"])
async def test_a_suggestion_ends_at_half_a_character(half: str) -> None:
    bench = Bench("x", FakeEngine(answer=f"a{half}b"))
    assert text_of(await bench.ask(0, 1)) == "a"


async def test_carriage_returns_of_the_model_become_line_feeds() -> None:
    bench = Bench("x", FakeEngine(answer="a\r\nb\rc"))
    assert text_of(await bench.ask(0, 1)) == "a\nb\nc"


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff", "\ufeff\r\n"])
async def test_an_empty_document_asks_nobody(text: str) -> None:
    bench = Bench(text, FakeEngine(answer="x"))
    answer = await bench.ask(0, 0)
    assert answer.reason == Reason.EMPTY
    assert bench.engine.requests == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a = 1\nb = fo", "a = 1"),
        ("a = fo", "a = fo"),
        ("x('Python Files\\\\Python Files\\\\Python Files\\\\Python Files\\\\Pyth", ""),
        ("a = 1\nlist = [None, None, None, None, None, No", "a = 1"),
        ("# ----------------------------------------", "# ----------------------------------------"),
    ],
)
def test_broken_ends(text: str, kept: str) -> None:
    assert without_broken_end(text) == kept


async def test_the_anchor_of_a_closed_document_is_forgotten() -> None:
    bench = Bench("a = 1\n", FakeEngine(answer="b"))
    options = replace(OPTIONS, order="lines-in-middle")

    async def prompt() -> str:
        bench.service.suggestions.clear()
        await bench.ask(1 if bench.version == 1 else 2, 0, options=options)
        return bench.engine.codec.show(bench.engine.requests[-1].prompt)

    assert (await prompt()).startswith("<|fim_prefix|>a = 1\n<|fim_suffix|>")
    bench.type(1, 0, "c = 2\n")
    assert (await prompt()).endswith("<|fim_middle|>c = 2\n")
    bench.service.closed(URI)
    assert (await prompt()).endswith("<|fim_middle|>")
