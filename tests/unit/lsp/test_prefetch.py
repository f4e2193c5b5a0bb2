"""Asking in advance for what follows an acceptance."""

from __future__ import annotations

import asyncio

import pytest

from inference.api import FinishReason
from lsp_server.completion.answer import placed
from lsp_server.completion.prefetch import AFTER_ACCEPTANCE_SECONDS, after_acceptance
from lsp_server.completion.running import Place
from lsp_server.documents.text import Point, Snapshot
from tests.unit.lsp.editor import OPTIONS, URI, Editor, text_of


def _answers(prompt: str) -> str:
    return "second" if prompt.endswith("first") else "third" if prompt.endswith("second") else "first"


def _eager(editor: Editor) -> Editor:
    editor.service.prefetch.enabled = True
    editor.service.prefetch.pause_seconds = 0
    return editor


async def _answered(editor: Editor) -> None:
    """The first suggestion is on screen, and what follows it is being prefetched."""
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(5)
    assert text_of(await asked) == "first"
    await editor.settle()


async def test_what_follows_is_there_once_the_suggestion_is_accepted() -> None:
    editor = _eager(Editor("x = \nrest", _answers, free=True))
    await editor.ask(0, 4)
    await editor.settle()
    assert len(editor.engine.requests) == 2
    editor.type(0, 4, "first")
    answer = await editor.ask(0, 9)
    assert text_of(answer) == "second"
    assert answer.cached and answer.source == "prefetch"
    counts = editor.service.statistics.totals().counts
    assert counts["prefetches"] == 1 and counts["prefetchDecodedTokens"] == 6
    assert counts["decodedTokens"] == 5 and counts["acceptedWhole"] == 1


async def test_one_prefetch_for_each_suggestion_and_none_when_switched_off() -> None:
    editor = _eager(Editor("x = ", _answers, free=True))
    for _ in range(3):
        await editor.ask(0, 4)
        await editor.settle()
    editor.type(0, 4, "f")
    await editor.ask(0, 5)
    await editor.settle()
    assert len(editor.engine.requests) == 2, "typing along leads to the same place"
    editor = _eager(Editor("x = ", _answers, free=True))
    editor.service.prefetch.enabled = False
    await editor.ask(0, 4)
    await editor.settle()
    assert len(editor.engine.requests) == 1


async def test_any_request_that_needs_the_model_comes_first() -> None:
    editor = _eager(Editor("x = ", _answers))
    other = "file:///work/other.py"
    editor.store.open(other, 1, "python", "y = ")
    await _answered(editor)
    assert len(editor.engine.generations) == 2
    editor.ask(0, 4, uri=other)
    await editor.settle()
    assert editor.engine.generations[1].stop is FinishReason.CANCELLED
    assert len(editor.engine.generations) == 3


async def test_a_request_for_what_is_being_prefetched_joins_it() -> None:
    editor = _eager(Editor("x = ", _answers))
    await _answered(editor)
    editor.type(0, 4, "first")
    new = editor.ask(0, 9)
    await editor.settle()
    assert len(editor.engine.generations) == 2 and not new.done()
    await editor.write(100)
    answer = await new
    assert text_of(answer) == "second" and answer.source == "prefetch"


async def test_typing_something_else_after_a_suggestion_gives_up_the_prefetch() -> None:
    editor = _eager(Editor("x = ", _answers))
    await _answered(editor)
    editor.type(0, 4, "n")
    editor.ask(0, 5)
    await editor.settle()
    assert editor.engine.generations[1].stop is not None


async def test_a_document_with_the_same_text_does_not_join_it() -> None:
    editor = _eager(Editor("x = ", _answers))
    await _answered(editor)
    other = "file:///work/other.py"
    editor.store.open(other, 1, "python", "x = first")
    new = editor.ask(0, 9, uri=other)
    await editor.settle()
    assert [request.document for request in editor.engine.requests] == [URI, URI, other]
    await editor.write(100)
    assert text_of(await new) == "second"


async def test_settings_that_changed_are_not_prefetched_with_what_they_were() -> None:
    editor = _eager(Editor("x = ", _answers, free=True))
    await editor.ask(0, 4)
    editor.service.reset()
    editor.type(0, 4, "first")
    await asyncio.sleep(AFTER_ACCEPTANCE_SECONDS * 2)
    assert len(editor.engine.requests) == 1


async def test_closing_a_document_ends_its_prefetch() -> None:
    editor = _eager(Editor("x = ", _answers))
    await _answered(editor)
    editor.service.closed(URI)
    assert await editor.stopped(editor.engine.generations[1])


@pytest.mark.parametrize(
    ("text", "cursor", "inserted", "after", "at"),
    [
        ("a\nb = \nc", Point(1, 4), "1", "a\nb = 1\nc", Point(1, 5)),
        ("a\r\nb\r\nc", Point(1, 1), "1\n  2", "a\r\nb1\r\n  2\r\nc", Point(2, 3)),
        ("f()", Point(0, 2), "a\nb", "f(a\nb)", Point(1, 1)),
        ("", Point(0, 0), "a\n", "a\n", Point(1, 0)),
    ],
)
def test_the_document_after_an_acceptance(
    text: str, cursor: Point, inserted: str, after: str, at: Point
) -> None:
    place = Place(Snapshot.of(text, URI), cursor, OPTIONS)
    then = after_acceptance(place, placed(place, inserted))
    assert "".join(then.snapshot.lines) == after
    assert then.snapshot.lines == Snapshot.of(after).lines
    assert then.cursor == at


@pytest.mark.parametrize("closed", [True, False])
async def test_a_document_that_is_closed_or_edited_after_an_acceptance_is_not_asked_for(closed: bool) -> None:
    editor = _eager(Editor("x = ", _answers, free=True))
    editor.service.prefetch.enabled = False
    await editor.ask(0, 4)
    editor.service.prefetch.enabled = True
    editor.type(0, 4, "first")
    if closed:
        editor.service.closed(URI)
        editor.store.close(URI)
    else:
        editor.type(0, 9, "!")
    assert editor.service.prefetch._timer is not None
    await asyncio.sleep(AFTER_ACCEPTANCE_SECONDS * 2)
    assert editor.service.prefetch._timer is None
    assert len(editor.engine.requests) == 1


async def test_it_makes_way_before_a_request_waits_for_a_pause() -> None:
    editor = _eager(Editor("x = ", _answers))
    other = "file:///work/other.py"
    editor.store.open(other, 1, "python", "y = ")
    await _answered(editor)
    editor.service.debounce.edited(other)
    waiting = editor.ask(0, 4, uri=other, debounce_ms=60_000)
    assert await editor.stopped(editor.engine.generations[1])
    assert len(editor.engine.generations) == 2 and not waiting.done()
    waiting.cancel()


async def test_one_that_ended_although_it_was_cancelled_is_not_remembered() -> None:
    editor = _eager(Editor("x = ", _answers))
    await _answered(editor)
    generation = editor.engine.generations[1]
    generation.cancel = lambda: None  # type: ignore[method-assign]  # its last token is being written
    editor.service.reset()
    await editor.write(100)
    assert generation.future.result().text == "second"
    editor.service.prefetch.enabled = False
    editor.type(0, 4, "first")
    assert not (await editor.ask(0, 9)).cached
    assert len(editor.engine.generations) == 3


async def test_a_place_whose_prefetch_was_stopped_is_asked_for_again() -> None:
    editor = _eager(Editor("x = ", _answers))
    await _answered(editor)
    assert len(editor.engine.generations) == 2
    editor.service.prefetch.cancel()
    assert await editor.stopped(editor.engine.generations[1])
    again = await editor.ask(0, 4)
    await editor.settle()
    assert again.cached and len(editor.engine.generations) == 3
    editor.service.prefetch.cancel()


async def test_it_is_asked_for_in_documents_that_want_it() -> None:
    editor = _eager(Editor("x = ", _answers, free=True))
    editor.service.prefetch.allowed = lambda uri: uri != URI
    await editor.ask(0, 4)
    await editor.settle()
    assert len(editor.engine.requests) == 1
