"""What the filters see of a document, and the unit of its indentation."""

from __future__ import annotations

import pytest

from lsp_server.completion.filter_context import filter_context
from lsp_server.completion.indent_style import indent_unit
from lsp_server.completion.options import CompletionOptions
from lsp_server.documents.text import Point, Snapshot


def test_lines_around_the_cursor() -> None:
    snapshot = Snapshot.of("a\r\n\r\n  bc d\r\n\r\ne", language_id="python")
    options = CompletionOptions(replaces_rest=True, filters_off=frozenset({"blank"}))
    context = filter_context(snapshot, Point(2, 4), options)
    assert (context.head, context.rest) == ("  bc", " d")
    assert (context.lines_above, context.lines_below) == (("a", ""), ("", "e"))
    assert (context.line_above, context.line_below) == ("a", "e")
    assert context.from_start and context.replaces_rest
    assert context.language_id == "python" and context.off == {"blank"}


def test_far_lines_are_left_out() -> None:
    snapshot = Snapshot.of("far\n" + "\n" * 100 + "x" * 1000 + "\nhere\n" + "\n" * 100 + "far")
    context = filter_context(snapshot, Point(102, 0), CompletionOptions())
    assert len(context.lines_above) < 100 > len(context.lines_below)
    assert not context.from_start
    assert len(context.line_above) < 1000 and context.line_below == ""


def test_the_edges_of_a_document() -> None:
    context = filter_context(Snapshot.of(""), Point(0, 0), CompletionOptions())
    assert (context.lines_above, context.lines_below, context.line_above) == ((), (), "")
    assert context.from_start


@pytest.mark.parametrize(
    ("lines", "unit"),
    [
        (["if x:", "    a", "if y:", "    b"], "    "),
        (["if (x) {", "  a", "  if (y) {", "    b"], "  "),
        (["func f() {", "\ta()", "\tb()", "}"], "\t"),
        (["if x:", "    a"], ""),
        (["if x:", "    a", "if y:", "  b"], ""),
        (["func f() {", "\ta()", "    b()"], ""),
        # Arguments and documentation say nothing about blocks.
        (["f(", "        a)", "g(", "        b)"], ""),
        (["/**", " * A.", " * Steps:", " *    one", " * Then:", " *    two"], ""),
        ([], ""),
    ],
)
def test_indent_unit(lines: list[str], unit: str) -> None:
    assert indent_unit(lines) == unit
