"""A place in a document, written with a mark where the cursor is."""

from __future__ import annotations

from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import Prepared, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.documents.text import Point, Snapshot
from tests.fake_engine import FakeCodec

MARK = "‸"


def at_mark(document: str, language_id: str, options: CompletionOptions | None = None) -> Prepared:
    """What the server prepares for the place of the one mark in ``document``."""
    before, mark, after = document.partition(MARK)
    assert mark and MARK not in after, "one cursor"
    snapshot = Snapshot.of(before + after, "file:///marked", language_id=language_id)
    cursor = Point(before.count("\n"), len(before) - before.rfind("\n") - 1)
    return prepare(snapshot, cursor, PromptBuilder(FakeCodec(), 4096), options or CompletionOptions())
