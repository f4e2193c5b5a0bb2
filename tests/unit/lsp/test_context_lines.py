"""Sources that parse: scopes, imports and definitions in each language, against kept answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.context.imports import import_lines
from lsp_server.context.names import identifiers, jaccard
from lsp_server.context.related import KeptLines, Shares, fit_files, fit_lines, reserve_for
from lsp_server.context.scopes import scope_lines
from lsp_server.context.tags import MAX_TAGS, tags_of
from lsp_server.documents.syntax import SyntaxTree
from lsp_server.documents.text import Snapshot
from lsp_server.prompts.fim import ContextFile
from tests.unit.lsp.context_samples import SAMPLES, know_grammar

GOLDEN = Path(__file__).parents[2] / "golden" / "context"


def report(language: str) -> str:
    """What the sources find in a sample: for its last method's last statement, and in the whole."""
    text = SAMPLES[language]
    snapshot = Snapshot.of(text, language_id=language)
    tree = SyntaxTree().tree(snapshot)
    line = max(
        number
        for number, line in enumerate(snapshot.lines)
        if ("this" in line or "self." in line or "s->" in line or "fmt." in line or "items." in line)
        or "@size" in line
        or "Size = value" in line
    )
    parts = [f"# scope at: {snapshot.line(line).strip()}\n"]
    parts += [each.text for each in scope_lines(snapshot, line, tree)]
    parts += ["# imports\n", *(each.text for each in import_lines(snapshot, line, tree))]
    for tag in tags_of(text, language):
        inside = f" in {tag.container_name}" if tag.container_name else ""
        parts += [f"# {tag.name}{inside}, lines {tag.first}-{tag.stop}\n", tag.shown]
    return "".join(parts)


@pytest.mark.parametrize("language", SAMPLES)
def test_a_sample_of_each_language(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    know_grammar(monkeypatch, language)
    assert report(language) == (GOLDEN / f"{language}.txt").read_text(encoding="utf-8")


def test_a_language_without_a_grammar_has_scopes_by_indentation() -> None:
    text = "outer do\n  inner do\n    x\n  end\n  other do\n    y\n"
    snapshot = Snapshot.of(text, language_id="klingon")
    assert [each.text for each in scope_lines(snapshot, 5, None)] == ["outer do\n", "  other do\n"]
    assert import_lines(snapshot, 5, None) == []
    assert tags_of(text, "klingon") == ()


def test_an_empty_line_is_in_the_scope_above_it() -> None:
    snapshot = Snapshot.of("class A:\n    def f(self):\n\n", language_id="klingon")
    assert [each.first for each in scope_lines(snapshot, 2, None)] == [0, 1]


def test_half_typed_code_keeps_its_scopes() -> None:
    text = "class A:\n    def f(self):\n        x = (\n        if [\n        y = 1\n"
    snapshot = Snapshot.of(text, language_id="python")
    kept = scope_lines(snapshot, 4, SyntaxTree().tree(snapshot))
    assert [each.text for each in kept][:1] == ["class A:\n"]


def test_definitions_of_a_file_are_bounded() -> None:
    assert len(tags_of("".join(f"x{number} = 1\n" for number in range(3000)), "python")) == MAX_TAGS
    (tag,) = tags_of("def f(" + "a" * 1000 + "):\n    pass\n", "python")
    assert len(tag.shown) < 200


def test_names() -> None:
    assert identifiers("for item in self.items_of(x, größe): return 3") == ["item", "items_of", "größe"]
    assert jaccard(frozenset("ab"), frozenset("bc")) == pytest.approx(1 / 3)
    assert jaccard(frozenset(), frozenset()) == 0


def words(text: str) -> int:
    return len(text.split())


LINES = [
    KeptLines(0, 2, "a\nb\n", 100),
    KeptLines(2, 3, "c c\n", 0),
    KeptLines(4, 6, "d\n", 200, verbatim=False),
]


@pytest.mark.parametrize(
    ("first_line", "limit", "expected"),
    [
        (9, 9, "a\nb\nc c\nd\n"),
        (9, 4, "a\nb\nc c\n"),  # the rank decides, not the order
        (9, 3, "c c\n"),  # imports of which a part does not fit, and nothing behind them
        (9, 1, ""),
        (5, 9, "a\nb\nc c\n"),  # the window shows a part of the last ones
        (1, 9, "a\n"),
        (0, 9, ""),
    ],
)
def test_lines_that_fit(first_line: int, limit: int, expected: str) -> None:
    assert fit_lines(LINES, first_line, limit, words) == expected
    assert words(expected) <= reserve_for(LINES, first_line, limit, words) <= limit


FILES = [ContextFile("far.py", "1\n2\n3\n4\n5\n"), ContextFile("near.py", "6\n7\n8\n")]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (100, ["12345", "678"]),
        (18, ["12345", "678"]),
        (17, ["1234", "678"]),
        (15, ["678"]),  # two lines of it say nothing
        (8, ["678"]),
        (7, []),
        (0, []),
    ],
)
def test_pieces_that_fit(limit: int, expected: list[str]) -> None:
    kept, spent = fit_files(FILES, limit, words)
    assert [file.text.replace("\n", "") for file in kept] == expected
    assert spent <= limit


def test_shares_depend_on_the_settings_alone() -> None:
    both = frozenset({"scope", "tabs"})
    assert Shares.of(both, 100, 1000) == Shares(50, 50)
    assert Shares.of(both, 1000, 200) == Shares(50, 50)
    assert Shares.of(frozenset({"imports"}), 100, 1000) == Shares(100, 0)
    assert Shares.of(frozenset({"recent"}), 100, 1000) == Shares(0, 100)
    assert Shares.of(frozenset(), 100, 1000) == Shares(0, 0)
