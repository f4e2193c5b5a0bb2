"""Cells of a notebook as one text, and the routes that keep it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lsprotocol import types
from pygls.protocol import default_converter

from lsp_server import notebook_routes
from lsp_server.documents.text import Point
from lsp_server.server import DraftlineServer, create_server
from lsp_server.settings import Settings
from tests.fake_engine import FakeEngine

BOOK = "file:///work/book.ipynb"
CONVERTER = default_converter()


def cell(number: int) -> str:
    return f"vscode-notebook-cell:/work/book.ipynb#c{number}"


def structured(kind: Any, value: dict[str, Any]) -> Any:
    return CONVERTER.structure(value, kind)


def open_book(server: DraftlineServer, cells: list[tuple[str, str]], uri: str = BOOK) -> None:
    """``cells``: language and text of each; markdown is prose."""
    book = {
        "uri": uri,
        "notebookType": "jupyter-notebook",
        "version": 1,
        "cells": [
            {"kind": 1 if language == "markdown" else 2, "document": cell(number)}
            for number, (language, _) in enumerate(cells)
        ],
    }
    texts = [
        {"uri": cell(number), "languageId": language, "version": 1, "text": text}
        for number, (language, text) in enumerate(cells)
    ]
    params = {"notebookDocument": book, "cellTextDocuments": texts}
    notebook_routes._did_open(server, structured(types.DidOpenNotebookDocumentParams, params))


def change_book(server: DraftlineServer, cells: dict[str, Any]) -> None:
    params = {"notebookDocument": {"uri": BOOK, "version": 2}, "change": {"cells": cells}}
    notebook_routes._did_change(server, structured(types.DidChangeNotebookDocumentParams, params))


def view(server: DraftlineServer, number: int, line: int = 0, column: int = 0) -> tuple[str, Point, str]:
    snapshot = server.store.get(cell(number)).snapshot()
    joined, cursor = server.notebooks.joined(snapshot, Point(line, column))
    assert joined.line(cursor.line) == snapshot.line(line)
    return "".join(joined.lines), cursor, joined.language_id


@pytest.fixture
def server() -> DraftlineServer:
    return create_server(Settings(debounce_ms=0))


def test_code_above_and_below_and_prose_as_comments(server: DraftlineServer) -> None:
    open_book(
        server,
        [
            ("python", "import os"),
            ("markdown", "# Load\n\nthe data\n"),
            ("python", ""),
            ("python", "x = 1\ny = 2"),
            ("sql", "select 1"),
            ("python", "print(x)\n"),
        ],
    )
    text, cursor, language = view(server, 3, 1, 4)
    assert text == "import os\n\n# # Load\n#\n# the data\n\nx = 1\ny = 2\n\nprint(x)"
    assert (cursor, language) == (Point(7, 4), "python")
    assert view(server, 4)[0] == "-- # Load\n--\n-- the data\n\nselect 1"


def test_cells_of_other_languages_see_their_like(server: DraftlineServer) -> None:
    open_book(
        server,
        [
            ("python", "%%bash\nls"),
            ("python", "%%time\na = 1"),
            ("python", "%matplotlib inline\nb = 2"),
            ("python", "%%bash\npwd"),
            ("python", "%%unheard of\nxyz"),
        ],
    )
    assert view(server, 3) == ("%%bash\nls\n\n%%bash\npwd", Point(3, 0), "shellscript")
    assert view(server, 2)[0] == "%%time\na = 1\n\n%matplotlib inline\nb = 2"
    assert view(server, 4) == ("%%unheard of\nxyz", Point(0, 0), "python")


def test_changes_of_structure_kind_and_text(server: DraftlineServer) -> None:
    open_book(server, [("python", "a = 1"), ("python", "b = 2"), ("python", "c = 3")])
    new = {"kind": 2, "document": cell(9)}
    change_book(
        server,
        {
            "structure": {
                "array": {"start": 1, "deleteCount": 1, "cells": [new]},
                "didOpen": [{"uri": cell(9), "languageId": "python", "version": 1, "text": "n = 9"}],
                "didClose": [{"uri": cell(1)}],
            }
        },
    )
    assert view(server, 2)[0] == "a = 1\n\nn = 9\n\nc = 3"
    assert server.store.version(cell(1)) is None and server.notebooks.owner(cell(1)) == cell(1)
    edit = {"range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}, "text": "10"}
    change_book(server, {"textContent": [{"document": {"uri": cell(9), "version": 2}, "changes": [edit]}]})
    assert view(server, 2)[0] == "a = 1\n\nn = 10\n\nc = 3"
    change_book(server, {"data": [{"kind": 1, "document": cell(0)}]})
    assert view(server, 2)[0].startswith("# a = 1\n\n")
    params = {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": [{"uri": cell(0)}]}
    notebook_routes._did_close(server, structured(types.DidCloseNotebookDocumentParams, params))
    assert len(server.store) == 0 and server.notebooks.owner(cell(0)) == cell(0)


def test_other_documents_and_far_cells(server: DraftlineServer) -> None:
    open_book(server, [("python", "x = 1\n" * 1500), ("python", "y = 2\n" * 1500), ("python", "z")])
    text, cursor, _ = view(server, 2)
    assert "y = 2" in text and "x = 1" not in text and cursor.line == 1501
    server.store.open("file:///a.py", 1, "python", "a")
    snapshot = server.store.get("file:///a.py").snapshot()
    assert server.notebooks.joined(snapshot, Point(0, 1)) == (snapshot, Point(0, 1))


async def test_a_suggestion_in_a_cell_has_the_cells_places(server: DraftlineServer) -> None:
    engine = FakeEngine(answer="lue")
    engine.start()
    server.host._engine = engine
    open_book(server, [("python", "value = 1"), ("python", "\nprint(va"), ("python", "after()")])
    answer = await server.completion.complete(cell(1), Point(1, 8), server.settings.completion_options())
    assert answer.suggestion is not None and answer.suggestion.text == "lue"
    assert (answer.row, answer.suggestion.range.start) == (1, 8)
    assert engine.codec.show(engine.requests[0].prompt) == (
        "<|fim_prefix|><|fim_suffix|>\n\nafter()<|fim_middle|>value = 1\n\n\nprint(va"
    )


def test_an_excluded_notebook_has_no_cells(server: DraftlineServer) -> None:
    open_book(server, [("python", "x = 1")], "file:///work/credentials.ipynb")
    assert len(server.store) == 0


async def test_a_suggestion_does_not_outlive_an_edit_in_another_cell(server: DraftlineServer) -> None:
    engine = FakeEngine(answer=lambda prompt: "new" if "b = 2" in prompt else "old")
    engine.start()
    server.host._engine = engine
    options = server.settings.completion_options()
    open_book(server, [("python", "a = 1"), ("python", "x = "), ("python", "c = 3")])

    async def asked() -> str:
        answer = await server.completion.complete(cell(1), Point(0, 4), options)
        assert answer.suggestion is not None
        return answer.suggestion.text

    assert await asked() == "old"
    assert await asked() == "old" and len(engine.requests) == 1
    edit = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}}
    change = [{"document": {"uri": cell(0), "version": 2}, "changes": [{**edit, "text": "b = 2"}]}]
    change_book(server, {"textContent": change})
    assert await asked() == "new" and len(engine.requests) == 2
    change_book(server, {"data": [{"kind": 1, "document": cell(2)}]})
    await asked()
    assert len(engine.requests) == 3, "prose is shown in another way than code"


async def test_what_is_on_screen_stays_there_while_the_user_types_in_the_cell(
    server: DraftlineServer,
) -> None:
    engine = FakeEngine(answer="old")
    engine.start()
    server.host._engine = engine
    open_book(server, [("python", "a = 1"), ("python", "x = ")])
    await server.completion.complete(cell(1), Point(0, 4), server.settings.completion_options())
    shown = server.completion.suggestions._on_screen
    assert shown is not None

    def edit(number: int) -> dict[str, Any]:
        place = {"line": 0, "character": 4}
        change = {"range": {"start": place, "end": place}, "text": "o"}
        return {"textContent": [{"document": {"uri": cell(number), "version": 2}, "changes": [change]}]}

    change_book(server, edit(1))
    assert server.completion.suggestions._on_screen is shown
    change_book(server, edit(0))
    assert server.completion.suggestions._on_screen is None


def test_a_joined_text_is_the_same_object_until_a_cell_changes(server: DraftlineServer) -> None:
    open_book(server, [("python", "a = 1"), ("python", "x = ")])
    snapshot = server.store.get(cell(1)).snapshot()
    first, _ = server.notebooks.joined(snapshot, Point(0, 0))
    again, cursor = server.notebooks.joined(snapshot, Point(0, 3))
    assert again is first and cursor == Point(2, 3)
    server.change_document(cell(0), 2, [types.TextDocumentContentChangeWholeDocument("b = 2\nc = 3")])
    changed, cursor = server.notebooks.joined(snapshot, Point(0, 3))
    assert changed.lines == ("b = 2\n", "c = 3\n", "\n", "x = ") and cursor == Point(3, 3)
    server.forget(cell(0))
    assert server.notebooks._last is None


async def test_cells_are_noted_by_their_own_lines_and_leave_the_ring_to_files(
    server: DraftlineServer,
) -> None:
    engine = FakeEngine(answer="lue")
    engine.start()
    server.host._engine = engine
    sources = frozenset({"recent", "accepted"})
    options = replace(server.settings.completion_options(), context_sources=sources)
    long = "".join(f"name_{number} = {number}\n" for number in range(80))
    open_book(server, [("python", long), ("python", long + "x = "), ("python", "print(va")])
    await server.completion.complete(cell(1), Point(80, 4), options)
    assert server.context._places[cell(1)] == 80
    known = server.context._ring.chunks(cell(1), "recent", frozenset())
    server.context._noted.clear()
    for _ in range(20):
        await server.completion.complete(cell(2), Point(0, 8), options)
        await server.completion.complete(cell(1), Point(80, 4), options)
    assert server.context._noted == []
    assert server.context._ring.chunks(cell(1), "recent", frozenset()) == known
    await server.completion.complete(cell(1), Point(10, 4), options)
    assert server.context._noted == [(cell(1), 80, "recent")]
