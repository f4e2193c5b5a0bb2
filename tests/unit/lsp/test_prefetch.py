"""Asking in advance for what follows an acceptance."""

from __future__ import annotations

import pytest

from inference.api import FinishReason
from lsp_server.completion.answer import placed
from lsp_server.completion.prefetch import after_acceptance
from lsp_server.completion.running import Place
from lsp_server.documents.text import Point, Snapshot
from tests.unit.lsp.editor import OPTIONS, URI, Editor, text_of


def _answers(prompt: str) -> str:
    return "second" if prompt.endswith("first") else "third" if prompt.endswith("second") else "first"


def _eager(editor: Editor) -> Editor:
    editor.service.prefetch.enabled = True
    editor.service.prefetch.pause_seconds = 0
    return editor


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
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(5)
    assert text_of(await asked) == "first"
    await editor.settle()
    assert len(editor.engine.generations) == 2
    editor.ask(0, 4, uri=other)
    await editor.settle()
    assert editor.engine.generations[1].stop is FinishReason.CANCELLED
    assert len(editor.engine.generations) == 3


async def test_a_request_for_what_is_being_prefetched_joins_it() -> None:
    editor = _eager(Editor("x = ", _answers))
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(5)
    assert text_of(await asked) == "first"
    await editor.settle()
    editor.type(0, 4, "first")
    new = editor.ask(0, 9)
    await editor.settle()
    assert len(editor.engine.generations) == 2 and not new.done()
    await editor.write(100)
    answer = await new
    assert text_of(answer) == "second" and answer.source == "prefetch"


async def test_typing_something_else_after_a_suggestion_gives_up_the_prefetch() -> None:
    editor = _eager(Editor("x = ", _answers))
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(5)
    await asked
    await editor.settle()
    editor.type(0, 4, "n")
    editor.ask(0, 5)
    await editor.settle()
    assert editor.engine.generations[1].stop is not None


async def test_closing_a_document_ends_its_prefetch() -> None:
    editor = _eager(Editor("x = ", _answers))
    asked = editor.ask(0, 4)
    await editor.settle()
    await editor.write(5)
    await asked
    await editor.settle()
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
