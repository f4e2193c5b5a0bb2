"""The indentation that a suggestion's later lines must keep."""

from __future__ import annotations

import pytest

from lsp_server.completion.scope import scope_indent

CASES = [
    ("", None),
    ("x = ", None),
    ("def f(x):", 1),
    ("    def f(x):", 5),
    ("    def f(x):  ", 5),
    ("        ", 8),
    ("    return ", 4),
    ("int main() {", 1),
    ("\tif x {", 5),
    ("\t\tx := ", 8),
    ("    call(", 5),
    ("items.map((x) =>", 1),
]


@pytest.mark.parametrize(("head", "columns"), CASES)
def test_scope_indent(head: str, columns: int | None) -> None:
    assert scope_indent(head) == columns
