"""The routes with an engine that breaks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Point
from lsp_server.inline_edit.routes import _Routes
from lsp_server.inline_edit.service import EditRequest
from lsp_server.settings import Settings
from tests.fake_engine import FakeEngine


async def test_a_fault_is_an_answer_with_a_reason() -> None:
    engine = FakeEngine()
    engine.start()

    def submit(request: object) -> Any:
        raise RuntimeError("a kernel broke")

    engine.submit = submit  # type: ignore[method-assign]
    store = DocumentStore()
    store.open("u", 1, "python", "x = 1\n")
    server: Any = SimpleNamespace(
        store=store,
        host=SimpleNamespace(engine=engine, status=engine.status),
        settings_of=lambda uri: Settings(),
        refusal=lambda snapshot: None,
    )
    answer = await _Routes(server)._edit(EditRequest("u", Point(0, 0), Point(1, 0), "Rename."), None)
    assert (answer.reason, answer.rewritten) == ("error", None) and answer.message
