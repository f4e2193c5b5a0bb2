"""Which suggestions count as made from what a prompt would show now."""

from __future__ import annotations

from typing import Any

from lsp_server.completion.options import CompletionOptions
from lsp_server.context.related import Related
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.fim import ContextFile
from tests.unit.lsp.editor import URI, Editor, text_of

OPTIONS = CompletionOptions(context_sources=frozenset({"tabs"}))


class Gatherer:
    """Finds what it is told to, and like the real one knows what the last prompt showed."""

    def __init__(self) -> None:
        self.next = "first"
        self._files: tuple[ContextFile, ...] = ()

    def files_of(self, uri: str) -> tuple[ContextFile, ...]:
        return self._files

    def gather(self, snapshot: Snapshot, cursor: Point, options: CompletionOptions, line: int) -> Related:
        self._files = (ContextFile("other.py", self.next + "\n"),)
        return Related(self._files)


def _editor(text: str) -> tuple[Editor, Any]:
    editor = Editor(text, lambda prompt: "new" if "second" in prompt else "old", free=True)
    gatherer: Any = Gatherer()
    editor.service.asking._gatherer = gatherer
    return editor, gatherer


async def test_a_suggestion_is_known_by_the_context_that_its_own_prompt_showed() -> None:
    editor, gatherer = _editor("x = \ny = \n")
    assert text_of(await editor.ask(0, 4, options=OPTIONS)) == "old"
    again = await editor.ask(0, 4, options=OPTIONS)
    assert again.cached, "nothing has changed"
    gatherer.next = "second"
    assert text_of(await editor.ask(1, 4, options=OPTIONS)) == "new"
    back = await editor.ask(0, 4, options=OPTIONS)
    assert not back.cached and text_of(back) == "new"
    there = await editor.ask(1, 4, options=OPTIONS)
    assert there.cached and text_of(there) == "new", "made with the same context"


async def test_candidates_and_what_is_on_screen_too() -> None:
    editor, gatherer = _editor("x = \ny = \n")
    await editor.ask(0, 4, candidates=2, options=OPTIONS)
    gatherer.next = "second"
    await editor.ask(1, 4, candidates=2, options=OPTIONS)
    assert (await editor.ask(1, 4, options=OPTIONS)).cached
    assert text_of(await editor.ask(0, 4, options=OPTIONS)) == "new"


async def test_a_stream_with_another_context_is_not_joined() -> None:
    editor, gatherer = _editor("x = ")
    editor.engine._pace = editor.pace
    asked = editor.ask(0, 4, options=OPTIONS)
    await editor.settle()
    await editor.write(1)
    gatherer._files = ()  # the rules have changed, say
    gatherer.next = "second"
    again = editor.ask(0, 4, options=OPTIONS)
    await editor.settle()
    assert (await asked).superseded and len(editor.engine.requests) == 2
    await editor.write(100)
    assert text_of(await again) == "new"


async def test_what_was_read_in_one_document_is_not_on_screen_in_another() -> None:
    editor, gatherer = _editor("x = ")
    await editor.ask(0, 4, options=OPTIONS)
    other = "file:///work/other.py"
    editor.store.open(other, 1, "python", "y = ")
    editor.type(0, 4, "o")
    assert (await editor.ask(0, 5, options=OPTIONS)).cached, "the user types along it"
    gatherer._files = ()
    assert (await editor.ask(0, 5, options=OPTIONS)).cached, "nothing changes under the user's eyes"
    editor.service.edited(other, [])
    gatherer._files = ()
    assert not (await editor.ask(0, 5, options=OPTIONS)).cached
    assert URI in editor.service._answered
