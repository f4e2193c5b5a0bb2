"""What happens to an answer that is still being written, and to one that is shown, while the user types."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from inference.api import FinishReason, GenerationResult, Timings
from lsp_server.completion.partial import complete_lines, suggestion_in
from lsp_server.completion.pipeline import finish, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.ranges import ItemRange
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.completion.running import GRACE_SECONDS
from lsp_server.completion.suggestions import Shown, SuggestionCache
from lsp_server.documents.text import Point, Snapshot
from tests.fake_engine import FakeCodec, FakeEngine
from tests.unit.lsp.editor import OPTIONS, URI, Editor, text_of


async def test_typing_along_a_stream_takes_the_rest_of_it() -> None:
    editor = Editor("x = ", "value + 1")
    old = editor.ask(0, 4)
    await editor.settle()
    await editor.write(3)
    editor.type(0, 4, "v")
    new = editor.ask(0, 5)
    given = await old
    assert given.superseded and given.reason == Reason.SUPERSEDED
    editor.type(0, 5, "alue")  # ahead of what was written
    newest = editor.ask(0, 9)
    assert (await new).superseded
    await editor.write(100)
    answer = await newest
    assert text_of(answer) == " + 1"
    assert answer.source == "stream" and not answer.cached
    assert len(editor.engine.requests) == 1


async def test_what_contradicts_the_stream_stops_it_at_the_edit() -> None:
    editor = Editor("x = ", "value")
    old = editor.ask(0, 4)
    await editor.settle()
    await editor.write(2)
    editor.type(0, 4, "n")
    assert await editor.stopped(editor.engine.generations[0])
    assert (await old).superseded, "not an empty list"
    new = editor.ask(0, 5)
    await editor.settle()
    assert len(editor.engine.requests) == 2
    await editor.write(100)
    assert text_of(await new) == "value"
    assert (await new).source == "model"


async def test_what_was_typed_ahead_is_contradicted_when_the_stream_gets_there() -> None:
    editor = Editor("x = ", lambda prompt: "one" if prompt.endswith("x = n") else "value")
    editor.ask(0, 4)
    await editor.settle()
    editor.type(0, 4, "n")
    new = editor.ask(0, 5)
    await editor.settle()
    assert len(editor.engine.requests) == 1, "nothing is known yet"
    await editor.write(1)
    await editor.settle()
    assert editor.engine.generations[0].stop is FinishReason.CANCELLED
    await editor.write(100)
    assert text_of(await new) == "one"


async def test_an_edit_elsewhere_stops_the_stream() -> None:
    editor = Editor("x = \nrest\n", "value")
    editor.ask(0, 4)
    await editor.settle()
    editor.type(1, 0, "other ")
    assert await editor.stopped(editor.engine.generations[0])


async def test_a_stream_that_has_nothing_more_to_say_is_asked_anew() -> None:
    editor = Editor("x = ", lambda prompt: "b" if prompt.endswith("x = a") else "a")
    editor.ask(0, 4)
    await editor.settle()
    editor.type(0, 4, "a")
    new = editor.ask(0, 5)
    await editor.write(1)
    await editor.settle()
    await editor.write(1)
    assert text_of(await new) == "b"


async def test_a_cancelled_request_may_be_followed_by_one_that_joins() -> None:
    """Editors cancel the old request and then send the new one."""
    editor = Editor("x = ", "value")
    old = editor.ask(0, 4)
    await editor.settle()
    await editor.write(1)
    editor.type(0, 4, "v")
    old.cancel()
    new = editor.ask(0, 5)
    await asyncio.sleep(GRACE_SECONDS * 1.5)
    await editor.write(100)
    assert text_of(await new) == "alue"
    assert old.cancelled() and len(editor.engine.requests) == 1


async def test_a_cancelled_request_that_nobody_joins_is_stopped() -> None:
    editor = Editor("x = ", "value")
    old = editor.ask(0, 4)
    await editor.settle()
    old.cancel()
    await asyncio.sleep(GRACE_SECONDS * 1.5)
    assert editor.engine.generations[0].stop is FinishReason.CANCELLED


async def test_the_deadline_answers_whole_lines_and_the_rest_comes_later() -> None:
    answer = "for a in b:\n        use(a)\n    return a"
    editor = Editor("def f():\n    ", answer)
    first = editor.ask(1, 4, first_line_ms=1)
    await editor.settle()
    await editor.write(8)
    assert not first.done(), "no line is whole"
    await editor.write(len("in b:\n    "))
    given = await first
    assert text_of(given) == "for a in b:"
    assert not given.superseded and given.source == "model"
    editor.type(1, 4, "f")
    assert text_of(await editor.ask(1, 5, first_line_ms=1)) == "or a in b:"
    assert editor.engine.generations[0].stop is None, "it goes on"
    await editor.write(100)
    longer = await editor.ask(1, 5, first_line_ms=1)
    assert text_of(longer) == answer[1:] and longer.source == "cache"
    assert len(editor.engine.requests) == 1


@pytest.mark.parametrize("edited", [False, True])
async def test_that_a_half_answer_has_grown_is_told_if_the_text_is_the_same(edited: bool) -> None:
    answer = "for a in b:\n        use(a)\n    return a"
    editor = Editor("def f():\n    ", answer)
    told: list[tuple[str, int]] = []
    editor.service.on_grown = lambda uri, version: told.append((uri, version))
    first = editor.ask(1, 4, first_line_ms=1)
    await editor.settle()
    await editor.write(len("for a in b:\n    "))
    assert text_of(await first) == "for a in b:" and not told
    if edited:
        editor.type(1, 4, "f")
    await editor.write(100)
    assert told == ([] if edited else [(URI, 1)])


async def test_of_a_whole_answer_nothing_more_is_told() -> None:
    editor = Editor("def f():\n    ", "a = 1\n    b = 2")
    editor.service.on_grown = lambda uri, version: pytest.fail("it was whole")
    first = editor.ask(1, 4)
    await editor.settle()
    await editor.write(100)
    assert text_of(await first) == "a = 1\n    b = 2"


async def test_without_a_deadline_only_whole_answers_come() -> None:
    editor = Editor("def f():\n    ", "a = 1\n    b = 2")
    first = editor.ask(1, 4)
    await editor.settle()
    await editor.write(12)
    assert not first.done()
    await editor.write(100)
    assert text_of(await first) == "a = 1\n    b = 2"


def test_whole_lines_are_always_a_prefix_of_the_answer() -> None:
    dice = random.Random(7)
    builder = PromptBuilder(FakeCodec(), 4096)
    pieces = ["a = 1", "b(2)", "", "}", ")", "    c", "```", "x", "y,", '"q"']
    documents = ["def f():\n    \nx\n", "g(\n)\n", "h()", "if a:\n    \n    y,\n", "s = ''\n", "k(,"]
    documents.append("  f {}\n")
    cursors = [Point(1, 4), Point(0, 2), Point(0, 2), Point(1, 4), Point(0, 5), Point(0, 2), Point(0, 5)]
    compared = 0
    for _ in range(3000):
        at = dice.randrange(len(documents))
        prepared = prepare(Snapshot.of(documents[at]), cursors[at], builder, OPTIONS)
        text = "\n".join(dice.choice(pieces) for _ in range(dice.randint(1, 9)))
        short = complete_lines(prepared, text[: dice.randint(0, len(text))])
        if short is None:
            continue
        reason = dice.choice([FinishReason.STOP_TOKEN, FinishReason.LENGTH])
        try:
            whole = finish(prepared, GenerationResult(text, (), reason, 0, 0, 0, 0, 0, Timings())).text
        except NoSuggestion:
            continue
        compared += 1
        # What puts a brace behind the cursor on a line of its own may come to stand further down.
        certain = short.text.rstrip() if "{}" in documents[at] else short.text
        assert whole.startswith(certain), (documents[at], text)
    assert compared > 500


@pytest.mark.parametrize(
    ("language", "text", "cursor", "answer"),
    [
        ("python", "x = 1\n\nprint(x)\n", Point(1, 0), "call(\n    a,\n    b,\n)\ny = 2"),
        ("javascript", "function f() {\n  \n}\n", Point(1, 2), "if (a) {\n    b();\n    c();\n  }\n  d();"),
        ("ruby", "x = 1\n\n", Point(1, 0), "def f\n  a\n  b\nend\n"),
    ],
)
def test_what_the_model_has_still_to_close_is_not_closed_early(
    language: str, text: str, cursor: Point, answer: str
) -> None:
    builder = PromptBuilder(FakeCodec(), 4096)
    prepared = prepare(Snapshot.of(text, URI, 1, language), cursor, builder, OPTIONS)
    whole = suggestion_in(prepared, answer)
    assert whole is not None
    parts = [complete_lines(prepared, answer[:stop]) for stop in range(len(answer))]
    texts = {part.text for part in parts if part is not None}
    assert texts and all(whole.text.startswith(part) for part in texts)


@pytest.mark.parametrize("turns", range(4))
async def test_a_late_cancel_of_the_old_request_leaves_the_new_one_alone(turns: int) -> None:
    editor = Editor("x = ", "value")
    old = editor.ask(0, 4)
    await editor.settle()
    await editor.write(1)
    editor.ask(0, 4)
    new = editor.ask(0, 4)
    for _ in range(turns):
        await asyncio.sleep(0)
    old.cancel()
    await asyncio.sleep(GRACE_SECONDS * 1.5)
    await editor.write(100)
    assert text_of(await new) == "value" and len(editor.engine.requests) == 1


async def test_closing_a_document_stops_its_stream() -> None:
    editor = Editor("x = ", "value")
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(2)
    editor.service.closed(URI)
    editor.store.close(URI)
    assert (await asked).superseded
    assert await editor.stopped(editor.engine.generations[0])
    await editor.settle()
    editor.store.open(URI, 1, "python", "x = ")
    assert editor.service.suggestions.rest(editor.store.get(URI).snapshot(), Point(0, 4)) is None


async def test_another_engine_does_not_go_on_with_the_old_one_s_stream() -> None:
    editor = Editor("x = ", "value")
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(2)
    editor.engine.close()
    given = await asked
    assert given.suggestion is None and given.reason == Reason.CANCELLED
    editor.present = FakeEngine(answer="other")
    editor.present.start()
    assert text_of(await editor.ask(0, 4)) == "other"


async def test_an_engine_that_is_replaced_under_a_request_is_not_joined() -> None:
    editor = Editor("x = ", "value")
    editor.ask(0, 4)
    await editor.settle()
    await editor.write(2)
    editor.present = FakeEngine(answer="other")
    editor.present.start()
    editor.type(0, 4, "v")
    assert text_of(await editor.ask(0, 5)) == "other"


async def test_going_back_brings_the_old_suggestion_back() -> None:
    editor = Editor("a\n    ", lambda prompt: "other" if prompt.endswith("    x") else "return 1", free=True)
    await editor.ask(1, 4)
    editor.type(1, 4, "x")
    assert text_of(await editor.ask(1, 5)) == "other"
    editor.type(1, 4, "", Point(1, 5))
    back = await editor.ask(1, 4)
    assert back.cached and text_of(back) == "return 1"


async def test_brackets_that_the_editor_closes() -> None:
    editor = Editor("    \nrest\n", 'print("a", b)\n    go()', free=True)
    await editor.ask(0, 4)
    editor.type(0, 4, "print")
    editor.type(0, 9, "()")
    inside = await editor.ask(0, 10)
    assert inside.cached and text_of(inside) == '"a", b', "the bracket is there already"
    editor.type(0, 10, '""')
    assert text_of(await editor.ask(0, 11)) == "a"
    editor.type(0, 11, "a")
    editor.type(0, 12, '"', Point(0, 13))  # typed over the quote
    assert text_of(await editor.ask(0, 13)) == ", b"
    whole = await editor.ask(0, 13, options=replace(OPTIONS, replaces_rest=True))
    assert whole.suggestion is not None and whole.suggestion.range.end == 14
    assert text_of(whole) == ", b)\n    go()"
    assert len(editor.engine.requests) == 1


async def test_a_block_that_the_editor_closes_on_a_line_of_its_own() -> None:
    editor = Editor("if (a) \nrest\n", "{\n  go();\n}", free=True)
    await editor.ask(0, 7)
    editor.type(0, 7, "{}")
    editor.type(0, 8, "\n  \n")
    answer = await editor.ask(1, 2)
    assert answer.cached and text_of(answer) == "go();"


@pytest.mark.parametrize("replaces_rest", [False, True])
async def test_a_new_line_between_brackets_keeps_the_suggestion(replaces_rest: bool) -> None:
    options = replace(OPTIONS, replaces_rest=replaces_rest)
    editor = Editor("  f() {}\n", "\n    go();\n  ", free=True)
    assert text_of(await editor.ask(0, 7, options=options)) == "\n    go();\n  "
    editor.type(0, 7, "\n    \n  ")
    answer = await editor.ask(1, 4, options=options)
    assert answer.cached and text_of(answer) == "go();", "the bracket has its line already"
    assert answer.suggestion is not None and answer.suggestion.range == ItemRange(4, 4)


async def test_a_new_line_between_brackets_does_not_stop_the_stream() -> None:
    editor = Editor("  f() {}\n", "\n    go();\n  ")
    editor.ask(0, 7)
    await editor.settle()
    await editor.write(3)
    editor.type(0, 7, "\n    \n  ")
    joined = editor.ask(1, 4)
    await editor.write(100)
    assert text_of(await joined) == "go();" and len(editor.engine.requests) == 1


async def test_a_bracket_that_was_to_be_replaced_and_has_moved_is_not_guessed_at() -> None:
    options = replace(OPTIONS, replaces_rest=True)
    editor = Editor("f([])\n", "\n    a], 1", free=True)
    first = await editor.ask(0, 3, options=options)
    assert first.suggestion is not None and first.suggestion.range == ItemRange(3, 4)
    editor.type(0, 3, "\n    \n")
    assert not (await editor.ask(1, 4, options=options)).cached


async def test_text_behind_the_cursor_that_nobody_closed_is_another_place() -> None:
    editor = Editor("    \nrest\n", "print(a)", free=True)
    await editor.ask(0, 4)
    editor.type(0, 4, "print)")
    assert not (await editor.ask(0, 9)).cached


def _at(text: str) -> tuple[Snapshot, Point]:
    return Snapshot.of(text, URI), Point(0, len(text))


def test_what_is_on_screen_is_replaced_only_by_what_extends_it() -> None:
    cache = SuggestionCache()
    shown = Shown(*_at("x = "), "value")
    cache.add(shown)
    cache.show(shown)
    cache.add(Shown(*_at("x = "), "other"))
    assert cache.rest(*_at("x = v")) == "alue"
    cache.add(Shown(*_at("x = v"), "alue + 1"))
    assert cache.rest(*_at("x = v")) == "alue + 1"
    assert cache.rest(*_at("x = o")) == "ther", "it became wrong"
    assert cache.replace(shown, Shown(*_at("x = "), "val")) is shown
    longer = Shown(*_at("x = "), "value.b")
    assert cache.replace(shown, longer) is longer
    assert cache.rest(*_at("x = v")) == "alue.b"


def test_another_context_counts_only_while_it_is_on_screen() -> None:
    cache = SuggestionCache()
    shown = Shown(*_at("x = "), "value", context=1)
    cache.add(shown)
    assert cache.find(*_at("x = v"), context=2) is None
    assert cache.find(*_at("x = v"), context=1) == (shown, "alue")
    cache.show(shown)
    assert cache.find(*_at("x = v"), context=2) == (shown, "alue")


async def test_by_hand_several_candidates_come_in_one_answer() -> None:
    texts = iter(["one", "two", "one ", "three"])
    editor = Editor("x = ", lambda prompt: next(texts), free=True)
    answer = await editor.ask(0, 4, candidates=4)
    assert text_of(answer) == "one"
    assert [other.text for other in answer.others] == ["two", "three"]
    first, *others = editor.engine.requests
    assert (first.temperature, first.top_p) == (0.0, 1.0)
    assert {request.prompt for request in others} == {first.prompt}
    assert all((request.temperature, request.top_p) == (0.8, 0.95) for request in others)
    assert len({request.seed for request in others}) == 3
    editor.type(0, 4, "t")
    assert text_of(await editor.ask(0, 5)) == "wo"
    assert len(editor.engine.requests) == 4


@pytest.mark.parametrize("cancelled", [True, False])
async def test_candidates_can_be_cancelled_and_superseded(cancelled: bool) -> None:
    editor = Editor("x = ", "value")
    asked = editor.ask(0, 4, candidates=3)
    await editor.settle()
    await editor.write(5)
    await editor.settle()
    await editor.write(1)
    assert len(editor.engine.generations) == 2
    if cancelled:
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    else:
        editor.type(0, 4, "x")
        editor.ask(0, 5)
        assert (await asked).superseded
    await editor.settle()
    assert editor.engine.generations[1].stop is not None


async def test_an_edit_supersedes_a_request_that_waits_for_a_pause() -> None:
    editor = Editor("x = ", "value")
    editor.type(0, 4, "v")
    waiting = editor.ask(0, 5, debounce_ms=60_000)
    await editor.settle()
    assert not waiting.done()
    editor.type(0, 5, "a")
    assert (await waiting).superseded
    assert editor.engine.requests == [] and not editor.service.busy


def _entry(start: int, end: int, text: str) -> tuple[Point, Point, str]:
    return Point(0, start), Point(0, end), text


async def test_a_popup_that_says_the_same_leaves_the_suggestion_alone() -> None:
    editor = Editor("x = \n", "print(a)", free=True)
    await editor.ask(0, 4)
    editor.type(0, 4, "pr")
    same = await editor.ask(0, 6, selected=_entry(4, 6, "print"))
    assert same.cached and text_of(same) == "print(a)"
    assert same.suggestion is not None and same.suggestion.range == ItemRange(4, 6)
    other = await editor.ask(0, 6, selected=_entry(4, 6, "prime"))
    assert not other.cached and len(editor.engine.requests) == 2


async def test_what_extends_a_popup_entry_stays_until_it_is_accepted() -> None:
    editor = Editor("x = pr\n", "(a)", free=True)
    first = await editor.ask(0, 6, selected=_entry(4, 6, "print"))
    assert text_of(first) == "print(a)" and not first.cached
    editor.type(0, 6, "i")
    typed = await editor.ask(0, 7, selected=_entry(4, 7, "print"))
    assert typed.cached and text_of(typed) == "print(a)"
    editor.type(0, 4, "print", until=Point(0, 7))
    accepted = await editor.ask(0, 9)
    assert accepted.cached and text_of(accepted) == "(a)"
    assert len(editor.engine.requests) == 1


async def test_a_popup_entry_is_not_extended_by_what_would_replace_a_bracket() -> None:
    options = replace(OPTIONS, replaces_rest=True)
    editor = Editor("f()\n", "ab) + 1", free=True)
    first = await editor.ask(0, 2, options=options)
    assert first.suggestion is not None and first.suggestion.range == ItemRange(2, 3)
    editor.type(0, 2, "a")
    assert not (await editor.ask(0, 3, options=options, selected=_entry(2, 3, "ab"))).cached
