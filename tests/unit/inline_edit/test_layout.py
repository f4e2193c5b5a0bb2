from __future__ import annotations

import pytest

from lsp_server.inline_edit.layout import Layout, Restorer


@pytest.mark.parametrize(
    ("old", "shown", "answer", "restored"),
    [
        # as shown
        (["    a", "        b"], ["a", "    b"], ["c", "    d"], ["    c", "        d"]),
        # as in the document
        (["    a", "        b"], ["a", "    b"], ["    c", "        d"], ["    c", "        d"]),
        # something of its own
        (["    a", "        b"], ["a", "    b"], ["  c", "      d"], ["    c", "        d"]),
        # a first line that is deeper than the others
        (["        a", "    b"], ["    a", "b"], ["    c", "d"], ["        c", "    d"]),
        (["        a", "    b"], ["    a", "b"], ["c"], ["        c"]),
        # blank lines stay empty
        (["  a", "", "  b"], ["a", "", "b"], ["a", "   ", "b"], ["  a", "", "  b"]),
        # tabs stay tabs
        (["\ta", "\t\tb"], ["a", "\tb"], ["c", "    d"], ["\tc", "\t\td"]),
        (["\ta", "\t\tb"], ["a", "\tb"], ["    c", "        d"], ["\tc", "\t\td"]),
        # at the margin
        (["a"], ["a"], ["b", "    c"], ["b", "    c"]),
    ],
)
def test_layout(old: list[str], shown: list[str], answer: list[str], restored: list[str]) -> None:
    layout = Layout.of(old)
    assert layout.shown(old) == shown
    restorer = Restorer(layout)
    assert [restorer.restore(line) for line in answer] == restored


def test_what_is_shown_comes_back() -> None:
    for old in (["  a", "    b"], ["\t\ta", "\tb", "\t\t\tc"], ["a", "\tb"], ["    x", "  \ty"]):
        restorer = Restorer(Layout.of(old))
        assert [restorer.restore(line) for line in Layout.of(old).shown(old)] == old
