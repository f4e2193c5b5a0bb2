"""A place where the cursor rests is read before a key is typed there."""

from __future__ import annotations

import asyncio

from inference.api import FinishReason
from lsp_server.completion.reasons import Reason
from lsp_server.documents.text import Point
from tests.unit.lsp.editor import OPTIONS, URI, Editor, text_of

TEXT = "x = \ny = \n"


def _rest(editor: Editor, line: int, column: int, **more: object) -> None:
    editor.service.rests(URI, Point(line, column), OPTIONS, **more)  # type: ignore[arg-type]


async def test_the_prompt_of_the_place_is_read_and_nothing_is_remembered() -> None:
    editor = Editor(TEXT, "first", free=True)
    _rest(editor, 1, 4)
    await editor.settle()
    (read,) = editor.engine.requests
    assert read.background and read.max_new_tokens == 1
    answer = await editor.ask(1, 4)
    assert text_of(answer) == "first" and not answer.cached
    asked = editor.engine.requests[1]
    assert asked.prompt == read.prompt and not asked.background


async def test_another_place_is_read_instead_and_the_same_one_once() -> None:
    editor = Editor(TEXT, "first")
    _rest(editor, 0, 4)
    _rest(editor, 0, 4)
    assert len(editor.engine.requests) == 1
    _rest(editor, 1, 4)
    assert len(editor.engine.requests) == 2
    assert editor.engine.generations[0].stop is not None
    assert editor.engine.generations[1].stop is None


async def test_nothing_is_read_while_somebody_waits() -> None:
    editor = Editor(TEXT, "first")
    asked = editor.ask(0, 4)
    await editor.settle()
    _rest(editor, 1, 4)
    assert len(editor.engine.requests) == 1
    await editor.write(5)
    assert text_of(await asked) == "first"


async def test_a_place_with_a_known_suggestion_is_read_already() -> None:
    editor = Editor(TEXT, "first", free=True)
    await editor.ask(0, 4)
    _rest(editor, 0, 4)
    assert len(editor.engine.requests) == 1


async def test_what_must_not_be_answered_for_is_not_read() -> None:
    editor = Editor(TEXT, "first", free=True)
    _rest(editor, 0, 4, allowed=lambda snapshot: Reason.DISABLED)
    assert not editor.engine.requests


async def test_a_closed_document_is_not_read_on() -> None:
    editor = Editor(TEXT, "first")
    _rest(editor, 0, 4)
    editor.service.closed(URI)
    assert editor.engine.generations[0].stop is FinishReason.CANCELLED


async def test_a_place_that_was_not_read_to_its_end_is_read_again() -> None:
    editor = Editor(TEXT, "first")
    _rest(editor, 0, 4)
    editor.engine.generations[0].cancel()  # as the engine does when somebody waits for another document
    await _end_of(editor, 0)
    _rest(editor, 0, 4)
    assert len(editor.engine.requests) == 2
    editor.pace.allow(1)
    await _end_of(editor, 1)
    _rest(editor, 0, 4)
    assert len(editor.engine.requests) == 2, "it was read"


async def _end_of(editor: Editor, number: int) -> None:
    while not editor.engine.generations[number].future.done():
        await asyncio.sleep(0.001)
    await editor.settle()
