"""Excluded text reaches no prompt, no memory of guesses, no store and no log, whenever it became so."""

from __future__ import annotations

import gc
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from lsprotocol import types

from inference.api import GenerationRequest
from lsp_server import server as routes
from lsp_server.completion.reasons import Reason
from lsp_server.documents import bounds
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Change, Point
from lsp_server.server import DraftlineServer, create_server
from lsp_server.settings import Settings
from tests.fake_engine import FakeCodec, FakeEngine
from tests.unit.lsp.test_secrets import TOKENS, key

MARK = "wholly_private_words"


@pytest.fixture
def engine() -> FakeEngine:
    engine = FakeEngine(answer="answer")
    engine.start()
    return engine


@pytest.fixture
def server(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DraftlineServer:
    server = create_server(Settings(debounce_ms=0, disabled_filters=frozenset({"syntax"})))
    server.host._engine = engine
    monkeypatch.setattr(server.status, "answered", lambda *args: None)
    server.folders.set([tmp_path.as_uri()])
    server.exclusions.set_roots(server.folders.roots)
    return server


def open_file(server: DraftlineServer, path: Path, text: str) -> str:
    document = types.TextDocumentItem(path.as_uri(), "python", 1, text)
    routes._did_open(server, types.DidOpenTextDocumentParams(document))
    return path.as_uri()


def edit(server: DraftlineServer, uri: str, text: str, line: int, column: int, version: int = 2) -> None:
    place = types.Position(line, column)
    change = types.TextDocumentContentChangePartial(range=types.Range(place, place), text=text)
    identifier = types.VersionedTextDocumentIdentifier(version=version, uri=uri)
    routes._did_change(server, types.DidChangeTextDocumentParams(identifier, [change]))


async def reason(server: DraftlineServer, uri: str, line: int = 0, column: int = 0) -> str:
    try:
        answer = await server.completion.complete(
            uri, Point(line, column), server.settings.completion_options(), allowed=server.refusal
        )
    except Withheld as withheld:
        return withheld.reason.value
    return "" if answer.suggestion else str(getattr(answer.reason, "value", answer.reason))


def seen(engine: FakeEngine) -> str:
    """All that the engine was ever given, or holds."""
    prompts = [engine.codec.show(r.prompt) + r.heal + r.stops.suffix for r in engine.requests]
    return "\n".join([*prompts, *engine.learned.values()])


@pytest.mark.parametrize("how", ["name", "ignore file", "nested ignore file", "key"])
async def test_excluded_from_the_start(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    folder = tmp_path / "src"
    folder.mkdir()
    if "ignore" in how:
        ((folder if "nested" in how else tmp_path) / ".draftlineignore").write_text("mine.*\n")
    path = folder / ("prod.env" if how == "name" else "mine.py")
    text = f"{MARK} = 1\n" + (key("PRIVATE " + "KEY") if how == "key" else "")
    uri = open_file(server, path, text)
    edit(server, uri, MARK, 0, 0)
    assert await reason(server, uri) == "excluded"
    assert MARK not in seen(engine) and MARK not in caplog.text
    del text
    gc.collect()
    held = [o for o in gc.get_objects() if type(o) is list and any(type(i) is str and MARK in i for i in o)]
    assert not held and server.store.version(uri) is None


async def test_excluded_later_by_an_ignore_file(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path
) -> None:
    uri = open_file(server, tmp_path / "a.py", "x = 1\n")
    assert await reason(server, uri) == ""
    assert engine.learned and server.completion.suggestions._entries
    (tmp_path / ".draftlineignore").write_text("a.py\n")
    assert await reason(server, uri) == "excluded"
    assert not engine.learned and not server.completion.suggestions._entries


async def test_a_key_pasted_into_a_document_drops_it(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path
) -> None:
    uri = open_file(server, tmp_path / "a.py", f"x = 1\n{MARK}\n")
    assert await reason(server, uri) == ""
    begin, _, body = key("PRIVATE " + "KEY").partition("\n")
    edit(server, uri, begin + "\n", 1, 0)
    assert await reason(server, uri) == "", "the armour alone is no key"
    edit(server, uri, body, 2, 0, version=3)
    assert await reason(server, uri) == "excluded"
    assert not engine.learned and not server.completion.suggestions._entries
    assert body[:64] not in seen(engine)
    whole = types.TextDocumentContentChangeWholeDocument("x = 1\n")
    identifier = types.VersionedTextDocumentIdentifier(version=4, uri=uri)
    routes._did_change(server, types.DidChangeTextDocumentParams(identifier, [whole]))
    assert await reason(server, uri) == "", "back when a whole text without it comes"


async def test_tokens_are_replaced_everywhere_and_places_stay(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path
) -> None:
    token = TOKENS["github personal"]
    uri = open_file(server, tmp_path / "a.py", f't = "{token}"\nx = 1\n')
    assert engine.learned[uri] == 't = "' + "x" * len(token) + '"\nx = 1\n'
    assert await reason(server, uri, 1, 5) == ""
    assert await reason(server, uri, 0, 20) == "secret"
    edit(server, uri, "long_", 0, 0)
    assert await reason(server, uri, 0, len(token) + 11) == ""
    edit(server, uri, f'u = "{TOKENS["npm"]}"\n', 1, 0, version=3)
    assert uri not in engine.learned and not server.completion.suggestions._entries
    assert await reason(server, uri, 2, 5) == ""
    routes._did_save(server, types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
    assert token not in seen(engine) and TOKENS["npm"] not in seen(engine)
    assert "x" * len(TOKENS["npm"]) in engine.learned[uri]


async def test_what_git_ignores_is_completed_but_no_source(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".gitignore").write_text("*.gen.py\n")
    uri = open_file(server, tmp_path / "sub" / "a.gen.py", "x = 1\n")
    assert await reason(server, uri) == "" and not engine.learned
    settings = server.settings
    server.settings = replace(settings, respect_gitignore=False)
    server.learn(uri)
    assert uri in engine.learned
    server.settings = settings
    server.learn(uri)
    assert uri not in engine.learned


class CountingCodec(FakeCodec):
    encoded = 0

    def encode(self, text: str) -> list[int]:
        self.encoded += len(text)
        return super().encode(text)


@pytest.mark.parametrize("text", ["value = compute(1)\n" * 200_000, "abc(def); " * 300_000])
async def test_work_does_not_grow_with_the_file(
    server: DraftlineServer, engine: FakeEngine, tmp_path: Path, text: str
) -> None:
    codec = CountingCodec()
    engine.codec = codec
    uri = open_file(server, tmp_path / "a.py", text)
    assert len(engine.learned[uri]) <= bounds.MAX_LEARNED
    line, column = (100_000, 3) if "\n" in text else (0, 1_500_005)
    for step in range(3):
        edit(server, uri, "z", line, column + step, version=2 + step)
        assert await reason(server, uri, line, column + step + 1) == ""
    assert 0 < codec.encoded < 60_000
    request: GenerationRequest = engine.requests[-1]
    assert "zz" in engine.codec.show(request.prompt)
    routes._did_save(server, types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
    assert len(engine.learned[uri]) <= bounds.MAX_LEARNED
    assert "zzz" in engine.learned[uri] or "\n" not in text


def test_a_document_that_grows_past_the_limit_is_dropped() -> None:
    forgotten: list[str] = []
    store = DocumentStore(max_chars=10, on_forget=forgotten.append)
    store.open("a", 1, "python", "12345678")
    store.change("a", 2, [Change("90", Point(0, 0), Point(0, 0))])
    assert store.version("a") == 2
    store.change("a", 3, [Change("1", Point(0, 0), Point(0, 0))])
    with pytest.raises(Withheld) as caught:
        store.get("a")
    assert caught.value.reason is Reason.TOO_LARGE and forgotten == ["a"]
