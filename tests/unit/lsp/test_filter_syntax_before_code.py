from __future__ import annotations

from lsp_server.completion.filters import FilterContext
from lsp_server.completion.filters.syntax import syntax

ADD = "def add(a, b):\n    return a + b\n"


def suggested(after: str) -> str | None:
    context = FilterContext(rest=after.partition("\n")[0], language_id="python", after=after)
    return syntax("def subtract(a, b):", context)


def test_a_head_without_a_body_does_not_go_before_another() -> None:
    assert suggested(ADD) is None


def test_on_a_line_of_its_own_its_body_may_come_next() -> None:
    assert suggested("\n\n\n" + ADD) == "def subtract(a, b):"
