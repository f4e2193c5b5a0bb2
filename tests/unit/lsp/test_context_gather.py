"""What is gathered for a prompt, how long it stays, and what never gets there."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable
from pathlib import Path

import pytest

from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.context.exclusions import Exclusions
from lsp_server.context.gather import HOLD_LINES, PAUSE_S, ContextGatherer
from lsp_server.context.related import FILE_SOURCES, SOURCES, Related
from lsp_server.context.ring import CHUNK_LINES, CHUNKS, MOVED_LINES, Ring
from lsp_server.context.workspace_index import WorkspaceIndex
from lsp_server.context.workspaces import uri_of
from lsp_server.documents.languages import language_of
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Change, Point, Snapshot
from tests.fake_engine import FakeCodec

HELPERS = '''\
class Parcel:
    """A thing to send."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def postage_due(self, country: str) -> int:
        """Cents to pay."""
        return len(country)
'''
USER = """\
from helpers import Parcel


def send(parcel):
    parcel = Parcel(1.0)
    cents =
    return cents
"""


class Editor:
    """A client with some files open."""

    def __init__(self, *roots: Path, excluded: Exclusions | None = None) -> None:
        self.now = 0.0
        self.store = DocumentStore()
        self.exclusions = excluded or Exclusions()
        self.exclusions.set_roots(list(roots))
        self.gatherer = ContextGatherer(
            self.store, self.exclusions.excludes, background=False, clock=lambda: self.now
        )
        self.gatherer.set_roots(list(roots))

    def open(self, path: Path, text: str) -> str:
        uri = uri_of(path)
        self.store.open(uri, 1, language_of(path), text, excluded=self.exclusions.excludes(path))
        self.gatherer.opened(uri)
        return uri

    def type(self, uri: str, line: int, column: int, text: str) -> None:
        version = (self.store.version(uri) or 0) + 1
        self.store.change(uri, version, [Change(text, Point(line, column), Point(line, column))])
        self.gatherer.changed(uri, line)

    def gather(self, uri: str, line: int, sources: Iterable[str] = SOURCES, **more: int) -> Related:
        options = CompletionOptions(context_sources=frozenset(sources), **more)  # type: ignore[arg-type]
        return self.gatherer.gather(self.store.get(uri).snapshot(), Point(line, 0), options)


def long_file(marker: str) -> str:
    """Many different functions."""
    return "".join(f"def {marker}_{n}(value):\n    return value + {n}\n\n\n" for n in range(60))


def shown(related: Related) -> str:
    return "".join(f"[{file.path}]\n{file.text}" for file in related.files)


def test_definitions_of_files_that_are_not_open(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "helpers.py").write_text(HELPERS)
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", USER)
    related = editor.gather(uri, 5, ["definitions"])
    assert shown(related) == (
        '[pkg/helpers.py]\nclass Parcel:\n    """A thing to send."""\n'
        "    def __init__(self, weight: float) -> None: ...\n"
    )


def test_definitions_of_open_documents_as_they_are_now(tmp_path: Path) -> None:
    path = tmp_path / "helpers.py"
    path.write_text(HELPERS)
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", USER)
    editor.open(path, HELPERS.replace("weight: float", "grams: int"))
    assert "grams: int" in shown(editor.gather(uri, 5, ["definitions"]))
    assert "weight: float" not in shown(editor.gather(uri, 5, ["definitions"]))


def test_definitions_of_the_same_file_outside_of_the_window(tmp_path: Path) -> None:
    text = (
        "def far_away(value):\n    return value\n"
        + long_file("x") * 2
        + "def near():\n    far_away(1)\n    \n"
    )
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", text)
    line = text.count("\n") - 1
    assert shown(editor.gather(uri, line, ["definitions"])) == "[main.py]\ndef far_away(value): ...\n"
    editor.gatherer.closed(uri)
    assert shown(editor.gather(uri, line, ["definitions"], prompt_tokens=100_000)) == ""


def test_a_name_with_many_definitions_says_nothing(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"helpers{number}.py").write_text(HELPERS)
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", USER)
    assert editor.gather(uri, 5, ["definitions"]).files == ()


def test_a_saved_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "helpers.py"
    path.write_text(HELPERS)
    index = WorkspaceIndex(tmp_path, lambda path: False)
    index.build()
    path.write_text("def parcel_of(x):\n    pass\n")
    index.changed(path)
    assert index.lookup("Parcel", "python")
    list(index._reread())
    assert not index.lookup("Parcel", "python")
    assert [tag.name for _, tag in index.lookup("parcel_of", "python")] == ["parcel_of"]
    assert index.lookup("parcel_of", "go") == []
    path.unlink()
    index.changed(path)
    list(index._reread())
    assert len(index) == 0 and index.size_bytes == 0


def test_the_index_reads_in_the_background_and_not_while_busy(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    busy = [True, True, False]
    asked: list[bool] = []

    def is_busy() -> bool:
        asked.append(len(index) == 0)
        return busy.pop(0) if busy else False

    index = WorkspaceIndex(tmp_path, lambda path: False, is_busy)
    index.start()
    assert index._thread is not None
    while len(index) == 0:
        index._thread.join(0.01)
        assert index._thread.is_alive()
    assert all(asked[:3]) and busy == []
    index.close()
    index._thread.join(10)
    assert not index._thread.is_alive()
    assert index.lookup("Parcel", "python") == []


def test_the_index_is_bounded(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"f{number:02}.py").write_text(f"name_{number} = 1\n" + "#" * 80)
    (tmp_path / "huge.py").write_text("huge = 1\n" * 50_000)
    few = WorkspaceIndex(tmp_path, lambda path: False, max_files=5)
    few.build()
    assert len(few) == 5
    small = WorkspaceIndex(tmp_path, lambda path: False, max_bytes=300)
    small.build()
    assert 0 < small.size_bytes <= 300
    everything = WorkspaceIndex(tmp_path, lambda path: False)
    everything.build()
    assert len(everything) == 20
    everything.build()
    assert len(everything) == 20 and everything.size_bytes == sum(
        path.stat().st_size for path in tmp_path.glob("f*.py")
    )


def test_excluded_files_and_links_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "work", tmp_path / "other"
    for folder in (inside / "private", inside / "node_modules", outside):
        folder.mkdir(parents=True)
        (folder / "helpers.py").write_text(HELPERS)
    (inside / "secrets.py").write_text(HELPERS)
    (inside / "link.py").symlink_to(outside / "helpers.py")
    (inside / "linked").symlink_to(outside)
    (inside / ".draftlineignore").write_text("private/\n")
    opened: list[str] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path.name) or read(path))
    editor = Editor(inside)
    uri = editor.open(inside / "main.py", USER)
    assert editor.gather(uri, 5, ["definitions"]).files == ()
    assert opened == []


def test_what_becomes_excluded_is_gone_at_the_next_key(tmp_path: Path) -> None:
    path = tmp_path / "helpers.py"
    path.write_text(HELPERS)
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", USER)
    other = editor.open(path, HELPERS)
    editor.gatherer.viewed(other, 3)
    sources = ["definitions", "recent", "tabs"]
    assert editor.gather(uri, 5, sources).files
    (tmp_path / ".draftlineignore").write_text("helpers.py\n")
    assert editor.gather(uri, 5, sources).files == ()
    editor.gatherer.rules_changed()
    assert editor.gatherer._ring.uris == {uri}


@pytest.mark.parametrize("source", FILE_SOURCES)
def test_workspaces_do_not_mix(source: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "one" / "two"
    two.mkdir(parents=True)
    (two / "helpers.py").write_text(HELPERS)

    def asked(*roots: Path) -> Related:
        editor = Editor(*roots)
        uri = editor.open(one / "main.py", USER)
        other = editor.open(two / "helpers.py", HELPERS)
        editor.gatherer.viewed(other, 5)
        editor.gatherer.shown("1", other, 5)
        editor.gatherer.accepted("1")
        editor.gatherer.viewed(uri, 5)
        return editor.gather(uri, 5, [source])

    assert [file.path for file in asked(one).files] == ["two/helpers.py"]
    assert asked(one, two).files == ()
    assert asked().files == ()  # files of two directories, and no workspace


def test_tabs_show_the_most_similar_part(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    similar = "def postage(parcel):\n    cents = parcel.weight\n    return cents\n"
    editor.open(tmp_path / "a.py", long_file("other") + similar)
    editor.open(tmp_path / "b.py", long_file("unlike"))
    editor.open(tmp_path / "c.rb", similar)
    uri = editor.open(tmp_path / "main.py", USER)
    (file,) = editor.gather(uri, 5, ["tabs"]).files
    assert file.path == "a.py"
    assert similar in file.text and file.text.count("\n") <= 30


def test_recent_chunks_are_where_the_user_was(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    other = editor.open(tmp_path / "other.py", long_file("other"))
    editor.type(other, 100, 0, "")
    editor.type(other, 100 + MOVED_LINES + 10, 0, "")
    uri = editor.open(tmp_path / "main.py", USER)
    texts = [file.text for file in editor.gather(uri, 5, ["recent"], context_tokens=4000).files]
    assert [("other_25(" in text, "other_35(" in text) for text in texts][-2:] == [
        (True, False),
        (False, True),
    ]


def test_a_chunk_takes_the_place_of_one_that_says_the_same() -> None:
    ring = Ring()
    lines = [f"line {number}\n" for number in range(200)]
    ring.add(Snapshot.of("".join(lines)), 100, "here", "recent")
    lines[100] = "changed\n"
    ring.add(Snapshot.of("".join(lines)), 100, "here", "recent")
    (chunk,) = ring.chunks("here", "recent", frozenset())
    assert "changed" in chunk.text and chunk.stop - chunk.first == CHUNK_LINES
    assert ring.chunks("here", "recent", chunk.words) == []  # what stands at the cursor already
    assert ring.chunks("there", "recent", frozenset()) == []
    for number in range(0, 200, 2):
        text = "".join(f"{number} {line}" for line in lines)
        ring.add(Snapshot.of(text), number, "here", "recent")
    assert len(ring) == CHUNKS


def test_accepted_suggestions(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    other = editor.open(tmp_path / "other.py", long_file("other"))
    editor.gatherer.shown("item", other, 100)
    uri = editor.open(tmp_path / "main.py", USER)
    assert editor.gather(uri, 5, ["accepted"]).files == ()
    editor.gatherer.accepted("item")
    editor.gatherer.accepted("unknown")
    editor.now += PAUSE_S
    (file,) = editor.gather(uri, 6, ["accepted"]).files
    assert "other_25(" in file.text


def test_nothing_changes_while_the_user_types_on_a_line(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    editor = Editor(tmp_path)
    text = "import os\n\n\nclass Long:\n" + "".join(
        f"    def method_{n}(self, parcel):\n        return Parcel({n})\n\n" for n in range(200)
    )
    lines = text.split("\n")
    lines.insert(401, "")
    other = editor.open(tmp_path / "other.py", long_file("parcel"))
    uri = editor.open(tmp_path / "main.py", "\n".join(lines))
    editor.gatherer.viewed(other, 80)
    first = editor.gather(uri, 401)
    builder = PromptBuilder(FakeCodec(), 4096)
    options = CompletionOptions(prompt_tokens=1024, context_sources=frozenset(SOURCES))
    begin: set[tuple[int, ...]] = set()
    assert first.files and first.prefix_lines
    typed = "        result = helper(Parcel(first, [x['"
    assert len(typed) >= 40
    for column, key in enumerate(typed):
        editor.type(uri, 401, column, key)
        editor.now += 2 * PAUSE_S  # thinking on the line is no reason either
        related = editor.gather(uri, 401)
        assert related == first
        snapshot = editor.store.get(uri).snapshot()
        cursor = Point(401, column + 1)
        built = builder.build(snapshot, cursor, options, related.files, related.prefix_lines)
        begin.add(built.ids[: built.ids.index(FakeCodec().special("<|fim_suffix|>"))])  # type: ignore[arg-type]
        editor.gatherer.viewed(other, 10 * column)  # elsewhere in a split view
    assert len(begin) == 1


def test_pieces_stay_near_where_they_were_gathered(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", long_file("main"))
    first = editor.gather(uri, 100, FILE_SOURCES)
    editor.open(tmp_path / "other.py", long_file("main").replace("value + 2", "value * 2"))
    for line in range(100, 100 + HOLD_LINES):
        assert editor.gather(uri, line, FILE_SOURCES) == first
    later = editor.gather(uri, 100 + HOLD_LINES + 1, FILE_SOURCES)
    assert later.files and later.version > first.version
    editor.open(tmp_path / "another.py", long_file("main").replace("value + 2", "value - 2"))
    held = editor.gather(uri, 100 + HOLD_LINES + 2, FILE_SOURCES)
    assert held == later
    editor.now += PAUSE_S
    assert editor.gather(uri, 100 + HOLD_LINES + 3, FILE_SOURCES).version > later.version


def test_the_same_happenings_gather_the_same(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"helpers{number}.py").write_text(HELPERS.replace("Parcel", f"Parcel{number}"))

    def once() -> Related:
        editor = Editor(tmp_path)
        other = editor.open(tmp_path / "other.py", long_file("send"))
        uri = editor.open(tmp_path / "main.py", USER + "".join(f"Parcel{n}(1)\n" for n in range(8)))
        editor.gatherer.viewed(other, 90)
        return editor.gather(uri, 5)

    first = once()
    assert first.files and once() == first


@pytest.mark.parametrize("tokens", [0, 16, 64, 256])
@pytest.mark.parametrize("sources", [("scope", "imports"), ("recent", "tabs", "definitions"), SOURCES])
def test_the_budget_is_taken_out_of_the_prompt(tokens: int, sources: tuple[str, ...], tmp_path: Path) -> None:
    """Of a character each, as in the test's codec: everything fits, and the context has its share only."""
    editor = Editor(tmp_path)
    editor.open(tmp_path / "other.py", inspect.getsource(argparse)[:30_000])
    uri = editor.open(tmp_path / "main.py", inspect.getsource(argparse))
    line = 1000
    options = CompletionOptions(
        prompt_tokens=600, max_new_tokens=64, context_sources=frozenset(sources), context_tokens=tokens
    )
    snapshot = editor.store.get(uri).snapshot()
    related = editor.gatherer.gather(snapshot, Point(line, 0), options)
    assert bool(related.files or related.prefix_lines) == (tokens > 0)
    builder = PromptBuilder(FakeCodec(), 4096)
    plain = builder.build(snapshot, Point(line, 0), CompletionOptions(prompt_tokens=600, max_new_tokens=64))
    built = builder.build(snapshot, Point(line, 0), options, related.files, related.prefix_lines)
    assert len(built.ids) <= 600
    lost = len(plain.window.above) - len(built.window.above)
    if tokens == 0:
        assert built.ids == plain.ids
    # The window begins at a whole block of lines, so it can lose more than it must.
    assert lost <= tokens + 400


def test_no_sources_gather_nothing(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", USER)
    assert editor.gather(uri, 5, []) == Related()
    assert editor.gather(uri, 5, context_tokens=0) == Related()
    editor.gatherer.closed(uri)
    assert not any(uri in known for known in editor.gatherer._by_uri)


def test_scope_and_imports_stand_at_the_top_of_a_cut_prefix(tmp_path: Path) -> None:
    body = "".join(f"        value_{n} = {n}\n" for n in range(200))
    text = (
        f"import os\n\n\nclass Long(Base):\n    def short(self):\n        pass\n\n    def f(self, x):\n{body}"
    )
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", text)
    snapshot = editor.store.get(uri).snapshot()
    sources = frozenset({"scope", "imports"})
    options = CompletionOptions(prompt_tokens=1000, max_new_tokens=64, context_sources=sources)
    related = editor.gatherer.gather(snapshot, Point(150, 0), options)
    builder = PromptBuilder(FakeCodec(), 4096)
    built = builder.build(snapshot, Point(150, 0), options, related.files, related.prefix_lines)
    prompt = FakeCodec().show(built.ids)
    top = "import os\nclass Long(Base):\n    def short(self): ...\n    def f(self, x):\n        value_"
    assert f"<|fim_middle|>{top}" in prompt
    related = editor.gatherer.gather(snapshot, Point(9, 0), options)
    built = builder.build(snapshot, Point(9, 0), options, related.files, related.prefix_lines)
    assert "<|fim_middle|>import os\n\n\nclass Long" in FakeCodec().show(built.ids)


def test_a_file_that_cannot_be_read_does_not_end_the_index(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("odd = 1\n")
    (tmp_path / "b.py").write_text(HELPERS)

    def excluded(path: Path) -> bool:
        if path.name == "a.py":
            raise RuntimeError("a rule that fails")
        return False

    index = WorkspaceIndex(tmp_path, excluded)
    index.build()
    assert len(index) == 1 and index.lookup("Parcel", "python")


def test_an_empty_line_behind_the_last_statement_is_in_its_function(tmp_path: Path) -> None:
    text = "class Shop:\n    def first(self):\n        pass\n\n    def second(self):\n        a = 1\n"
    for blanks, enclosing in (("", [0, 4]), (" " * 8, [0, 4]), (" " * 4, [0])):
        editor = Editor()
        uri = editor.open(tmp_path / "main.py", text + blanks + "\n\n\nx = 1\n")
        kept = editor.gather(uri, 6, ["scope"]).prefix_lines
        assert [each.first for each in kept if each.verbatim] == enclosing, blanks
        # The function that the user is in is not shown as one that is complete.
        assert [each.first for each in kept if not each.verbatim] == ([1] if len(enclosing) == 2 else [1, 4])


def test_chunks_of_a_cell_are_compared_with_the_window_by_the_lines_of_the_joined_text() -> None:
    cell, text = "vscode-notebook-cell:/work/b.ipynb#1", long_file("cell")
    editor = Editor()
    editor.store.open(cell, 1, "python", text)
    editor.gatherer.shown("item", cell, 200)
    editor.gatherer.accepted("item")
    options = CompletionOptions(context_sources=frozenset({"accepted"}), prompt_tokens=300)
    own = editor.store.get(cell).snapshot()
    above = tuple(f"above_{number} = {number}\n" for number in range(180))
    joined = Snapshot(cell, 1, "python", (*above, *own.lines))
    found = editor.gatherer.gather(joined, Point(200, 0), options, 20).files
    assert len(found) == 1, "line 200 of the cell is 180 lines below the cursor"
    editor.now += PAUSE_S
    assert editor.gatherer.gather(joined, Point(379, 0), options, 199).files == ()


def test_what_the_last_prompt_showed_is_unknown_once_the_rules_change(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", USER)
    assert editor.gather(uri, 5).files and editor.gatherer.files_of(uri)
    editor.gatherer.rules_changed()
    assert editor.gatherer.files_of(uri) == ()


def test_an_import_that_changes_in_place_is_shown_as_it_is(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "main.py", "import os\n\n\ndef f():\n    x = 1\n    \n")

    def imports() -> str:
        return "".join(each.text for each in editor.gather(uri, 5, ["imports"]).prefix_lines)

    assert imports() == "import os\n"
    editor.type(uri, 5, 4, "y")
    tree = editor.gatherer._trees[uri]._snapshot
    assert imports() == "import os\n" and editor.gatherer._trees[uri]._snapshot is tree, "not parsed again"
    editor.type(uri, 0, 9, "x")
    assert imports() == "import osx\n"
