"""Which texts the server gives to the engine to guess from, and when they are dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from inference.api import EngineState, EngineStatus
from lsp_server import server as routes
from lsp_server.server import DraftlineServer, create_server
from lsp_server.settings import Settings
from tests.fake_engine import FakeEngine


@pytest.fixture
def engine() -> FakeEngine:
    engine = FakeEngine()
    engine.start()
    return engine


@pytest.fixture
def server(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> DraftlineServer:
    server = create_server(Settings(disabled_languages=frozenset({"plaintext"})))
    server.host._engine = engine
    monkeypatch.setattr(server.status, "engine_changed", lambda status: None)
    monkeypatch.setattr(server.load_progress, "update", lambda status: None)
    return server


def _open(server: DraftlineServer, uri: str, text: str, language: str = "python") -> None:
    document = types.TextDocumentItem(uri, language, 1, text)
    routes._did_open(server, types.DidOpenTextDocumentParams(document))


def _save(server: DraftlineServer, uri: str) -> None:
    routes._did_save(server, types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))


def _close(server: DraftlineServer, uri: str) -> None:
    routes._did_close(server, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))


def test_open_and_saved_texts_are_learned_until_closed(server: DraftlineServer, engine: FakeEngine) -> None:
    _open(server, "file:///p/a.py", "a = 1\r\nb = 2\n")
    assert engine.learned == {"file:///p/a.py": "a = 1\nb = 2\n"}
    change = types.TextDocumentContentChangeWholeDocument("c = 3\n")
    identifier = types.VersionedTextDocumentIdentifier(version=2, uri="file:///p/a.py")
    routes._did_change(server, types.DidChangeTextDocumentParams(identifier, [change]))
    assert engine.learned == {"file:///p/a.py": "a = 1\nb = 2\n"}, "not at every key"
    _save(server, "file:///p/a.py")
    assert engine.learned == {"file:///p/a.py": "c = 3\n"}
    _close(server, "file:///p/a.py")
    _save(server, "file:///p/a.py")
    assert engine.learned == {}


def test_what_is_open_is_learned_when_the_engine_is_ready(
    server: DraftlineServer, engine: FakeEngine
) -> None:
    server.host._engine = None
    _open(server, "file:///p/a.py", "a = 1\n")
    server.host._engine = engine
    server.engine_changed(EngineStatus(EngineState.LOADING))
    assert engine.learned == {}
    server.engine_changed(EngineStatus(EngineState.READY))
    assert engine.learned == {"file:///p/a.py": "a = 1\n"}


def test_excluded_and_disabled_texts_are_not(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path
) -> None:
    _open(server, "file:///p/.env", "KEY=1\n")
    _open(server, "file:///p/notes.txt", "text\n", "plaintext")
    assert engine.learned == {}
    server.exclusions.set_roots([tmp_path])
    uri = (tmp_path / "mine.py").as_uri()
    _open(server, uri, "a = 1\n")
    assert engine.learned == {uri: "a = 1\n"}
    (tmp_path / ".draftlineignore").write_text("mine.py\n")
    _save(server, uri)
    assert engine.learned == {} and server.store.version(uri) is None
