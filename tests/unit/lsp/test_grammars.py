"""Grammars: all parse what they are for, and nothing depends on their being there."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath
from types import ModuleType

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from lsp_server.completion.filters import FILTERS, run_filters
from lsp_server.documents import grammars
from lsp_server.documents.grammars import GRAMMARS, parser_for
from lsp_server.documents.languages import canonical, language_of
from lsp_server.documents.surroundings import faults
from lsp_server.documents.syntax import MAX_CHARS, SyntaxTree
from lsp_server.documents.text import Snapshot
from tests.unit.lsp.cursor import at_mark

GOLDEN = Path(__file__).parents[2] / "golden" / "languages.toml"
SAMPLES: dict[str, str] = tomllib.loads(GOLDEN.read_text(encoding="utf-8"))["samples"]


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(grammars, "_languages", {})
    monkeypatch.setattr(grammars, "_of_thread", grammars._OfThread())
    yield


def test_every_grammar_has_a_sample() -> None:
    assert set(SAMPLES) == set(GRAMMARS)


@pytest.mark.parametrize("language", SAMPLES)
def test_samples_parse(language: str) -> None:
    text = SAMPLES[language]
    tree = SyntaxTree().tree(Snapshot.of(text, language_id=language))
    assert tree is not None
    assert faults(tree.root_node) == 0
    assert tree.root_node.child_count


@pytest.mark.parametrize("language", SAMPLES)
def test_a_stray_bracket_is_a_fault(language: str) -> None:
    if language in ("html", "shellscript"):
        pytest.skip("brackets are text there")
    parser = parser_for(language)
    assert parser is not None
    assert faults(parser.parse((SAMPLES[language] + "\n)]}\n").encode()).root_node)


@pytest.mark.usefixtures("nothing_loaded")
def test_a_missing_package_costs_the_tree_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_ruby", None)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            prepared = at_mark("def f(x)\n  # return the ‸\nend\n", "ruby")
    assert prepared.filters.surroundings is None
    assert prepared.shape.reason == "comment"
    assert run_filters("sum (", prepared.filters)[0] == "sum ("
    assert [record for record in caplog.messages if "ruby" in record] == caplog.messages[-1:]
    assert parser_for("python") is not None


@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize("value", [None, 5])
def test_so_does_a_broken_one(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    broken = ModuleType("tree_sitter_lua")
    if value is not None:
        broken.language = lambda: value
    monkeypatch.setitem(sys.modules, "tree_sitter_lua", broken)
    if value is None:
        assert parser_for("lua") is None
        assert SyntaxTree().tree(Snapshot.of("x = 1", language_id="lua")) is None
    else:

        def refuse(pointer: object) -> None:
            raise ValueError("Incompatible Language version")

        monkeypatch.setattr("tree_sitter.Language", refuse)
        assert parser_for("lua") is None


def test_what_is_too_large_is_not_parsed() -> None:
    tracked = SyntaxTree()
    line = "x = 1\n"
    assert tracked.tree(Snapshot.of(line, language_id="python")) is not None
    assert tracked.tree(Snapshot.of(line * (MAX_CHARS // len(line) + 1), language_id="python")) is None
    assert tracked.tree(Snapshot.of(line, language_id="python")) is not None


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("python", "python"),
        ("sh", "shellscript"),
        ("cs", "csharp"),
        ("c++", "cpp"),
        ("typescript.tsx", "typescriptreact"),
        ("Klingon", "klingon"),
    ],
)
def test_names_that_clients_use(sent: str, meant: str) -> None:
    assert canonical(sent) == meant
    assert (parser_for(sent) is None) == (parser_for(meant) is None) == (meant == "klingon")


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.py", "python"),
        ("a.kts", "kotlin"),
        ("a.SWIFT", "swift"),
        ("a.vue", "vue"),
        ("a.jsonc", "jsonc"),
        ("a.scss", "scss"),
        ("a.zsh", "shellscript"),
        ("Dockerfile", "dockerfile"),
        ("Dockerfile.prod", "dockerfile"),
        ("Makefile", "makefile"),
        ("Gemfile", "ruby"),
        ("Rakefile", "ruby"),
        (".bashrc", "shellscript"),
        ("CMakeLists.txt", "cmake"),
        ("tsconfig.json", "jsonc"),
        ("makefile.py", "python"),
        ("notes.txt", "plaintext"),
        ("README", "plaintext"),
        (".hidden", "plaintext"),
    ],
)
def test_file_names(name: str, language: str) -> None:
    assert language_of(PurePath("some.dir") / name) == language


@pytest.mark.parametrize("language", SAMPLES)
def test_what_stood_in_a_gap_is_not_touched(language: str) -> None:
    lines = SAMPLES[language].rstrip("\n").split("\n")
    for first in range(len(lines)):
        for stop in range(first + 1, len(lines) + 1):
            gap = "\n".join(lines[first:stop])
            blanks = gap[: len(gap) - len(gap.lstrip())]
            above = "".join(line + "\n" for line in lines[:first])
            below = "".join("\n" + line for line in lines[stop:])
            if not (above + below).strip():
                continue
            place = at_mark(f"{above}{blanks}‸{below}\n", language).filters
            text = gap[len(blanks) :]
            assert FILTERS["syntax"](text, place) == text
            if stop == first + 1:
                assert FILTERS["scope-end"](text, place) == text
