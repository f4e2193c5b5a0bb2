"""A service over one open document, with an engine whose pace a test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.service import Answer, CompletionService
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Change, Point
from tests.fake_engine import FakeEngine, FakeGeneration, Pace

URI = "file:///work/x.py"
OPTIONS = CompletionOptions()


class Editor:
    """Types and asks. The engine writes only what `write` allows it to, unless ``free``."""

    def __init__(self, text: str, answer: str | Callable[[str], str], *, free: bool = False) -> None:
        self.pace = Pace()
        self.engine = FakeEngine(answer=answer, pace=None if free else self.pace)
        self.present: FakeEngine = self.engine
        self.store = DocumentStore()
        self.store.open(URI, 1, "python", text)
        self.service = CompletionService(self.store, lambda: self.present, lambda: self.present.status)
        self.version = 1
        self.engine.start()

    def ask(self, line: int, column: int, uri: str = URI, **more: object) -> asyncio.Task[Answer]:
        options = more.pop("options", OPTIONS)
        request = self.service.complete(uri, Point(line, column), options, **more)  # type: ignore[arg-type]
        return asyncio.ensure_future(request)

    def type(self, line: int, column: int, text: str, until: Point | None = None) -> None:
        self.version += 1
        at = Point(line, column)
        changes = [Change(text, at, until or at)]
        self.store.change(URI, self.version, changes)
        self.service.edited(URI, changes)

    async def write(self, characters: int) -> None:
        """Let the engine write, and the service hear of it."""
        generation = self.engine.generations[-1]
        wanted = generation.steps + characters
        self.pace.allow(characters)
        while generation.steps < wanted and not generation.future.done():
            await asyncio.sleep(0.001)
        await self.settle()

    async def settle(self) -> None:
        """Let everything run that can."""
        for _ in range(20):
            await asyncio.sleep(0.001)

    async def stopped(self, generation: FakeGeneration) -> bool:
        """Whether the engine was told to stop it."""
        await self.settle()
        return generation.stop is not None


def text_of(answer: Answer) -> str:
    assert answer.suggestion is not None, answer.reason
    return answer.suggestion.text
