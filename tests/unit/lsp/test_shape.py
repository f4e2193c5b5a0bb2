"""How much to suggest, by place (tests/golden/shape.toml), and what the engine is told of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from lsp_server.completion.options import CompletionOptions
from lsp_server.documents import grammars
from tests.unit.lsp.cursor import at_mark

GOLDEN = Path(__file__).parents[2] / "golden" / "shape.toml"
CASES = tomllib.loads(GOLDEN.read_text(encoding="utf-8"))["case"]

FLAGS = {
    "rest-of-line": {"single_line"},
    "comment": {"finish_line"},
    "string": {"finish_line"},
    "block-start": {"whole_block"},
    "empty-body": {"whole_block"},
    "doc-comment": set(),
    "empty-line": set(),
    "line-end": set(),
}


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c['language']}: {c['name']}") for c in CASES])
def test_golden(case: dict[str, Any]) -> None:
    shape = at_mark(case["document"], case["language"]).shape
    assert shape.reason == case["reason"]
    set_flags = {name for name in ("single_line", "finish_line", "whole_block") if getattr(shape, name)}
    assert set_flags == FLAGS[case["reason"]]


def test_the_engine_is_told() -> None:
    stops = at_mark("x = f(‸, 1)\n", "python").request.stops
    assert stops.single_line and not stops.finish_line
    stops = at_mark("# the ‸\n", "python").request.stops
    assert stops.finish_line and not stops.single_line


def test_the_empty_body_of_a_block_is_deeper_than_its_head() -> None:
    assert at_mark("  if x:\n  ‸\n", "python").request.stops.min_indent == 3
    assert at_mark("  if x:\n    ‸\n", "python").request.stops.min_indent == 4
    # Its own first line decides where there is no indentation yet.
    stops = at_mark("  if x:\n‸\n", "python").request.stops
    assert stops.min_indent is None and stops.first_line_scope


@pytest.mark.parametrize(
    ("document", "language", "columns"),
    [
        ("\tswitch x {\n\t‸\n\t}\n", "go", 4),  # case stands as far left
        ("  case x\n  ‸\n  end\n", "ruby", 2),
        ("  def f\n  ‸\n", "ruby", 2),  # so does end
        ("  if x then‸\n", "lua", 2),
        ("    class A {‸\n", "cpp", 4),  # and public:
        ("  if (x) {‸\n", "cpp", 3),
    ],
)
def test_what_may_stand_below_the_head(document: str, language: str, columns: int) -> None:
    assert at_mark(document, language).request.stops.min_indent == columns


def test_each_can_be_switched_off() -> None:
    off = CompletionOptions(filters_off=frozenset({"shape"}))
    prepared = at_mark("# the ‸\n", "python", off)
    assert prepared.shape.reason == "line-end" and not prepared.request.stops.finish_line
    assert at_mark("x = f(‸, 1)\n", "python", off).request.stops.single_line
    off = CompletionOptions(filters_off=frozenset({"scope"}))
    assert at_mark("    x = ‸\n", "python").request.stops.min_indent == 4
    stops = at_mark("    x = ‸\n", "python", off).request.stops
    assert stops.min_indent is None
    assert not at_mark("‸\nx\n", "python", off).request.stops.first_line_scope


def test_without_its_grammar_a_language_is_judged_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "parser_for", lambda name: None)
    monkeypatch.setattr("lsp_server.documents.surroundings.parser_for", lambda name: None)
    for document, reason in (
        ("# the ‸\n", "comment"),
        ("print('a ‸\n", "string"),
        ("def f():\n    ‸\n", "empty-body"),
        ('def f():\n    """‸\n', "doc-comment"),
        ("def f(x):\n    return ‸\n", "line-end"),
    ):
        assert at_mark(document, "python").shape.reason == reason


def test_a_very_long_line_is_not_parsed() -> None:
    prepared = at_mark("x = [" + "1, " * 3000 + "# ‸\n", "python")
    assert prepared.filters.surroundings is None
    assert prepared.shape.reason == "comment"
