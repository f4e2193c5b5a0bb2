"""The judge of what an editor shows knows what a server suggested, and nothing else."""

from __future__ import annotations

import pytest

from tests.editors.answers import Suggested, is_suggested
from tests.editors.vscode_page import Shown

HEAD = "    x = f("
ITEM = Suggested(1, HEAD, "a)\n    y = g(b)\n    return y", "")


def _seen(text: list[str], drawn: list[str], below: list[str]) -> Shown:
    return Shown(text=["def h():", *text], drawn=["def h():", *drawn], below=below)


@pytest.mark.parametrize(
    ("text", "drawn", "below"),
    [
        ([HEAD], [HEAD + "a)"], ["    y = g(b)", "    return y"]),
        ([HEAD], [HEAD + "a)"], ["    y = g(b)"]),
        ([HEAD + ")"], [HEAD + "a))"], []),
        ([HEAD + "a"], [HEAD + "a)"], ["    y = g(b)", "    return y"]),
        ([HEAD + "a)", "    y = g(b)"], [HEAD + "a)", "    y = g(b)"], ["    return y"]),
        ([HEAD + "a)", "    "], [HEAD + "a)", "    y = g(b)"], ["    return y"]),
        ([HEAD + "a)", "    y = g()"], [HEAD + "a)", "    y = g(b))"], []),
        ([HEAD + "a)", "    y = g(b)", ""], [HEAD + "a)", "    y = g(b)", "    return y"], []),
    ],
)
def test_what_was_suggested(text: list[str], drawn: list[str], below: list[str]) -> None:
    assert is_suggested(_seen(text, drawn, below), [ITEM])


@pytest.mark.parametrize(
    ("text", "drawn", "below"),
    [
        ([HEAD + "b"], [HEAD + "ba)"], []),
        ([HEAD], [HEAD + "c)"], []),
        (["    x"], [HEAD + "a)"], []),
        ([HEAD], [HEAD + "a)"], ["    return y"]),
        ([HEAD + "c)", "    "], [HEAD + "c)", "    y = g(b)"], []),
        ([HEAD + "a)", "    z"], [HEAD + "a)", "    zy = g(b)"], []),
        ([HEAD + "a)", "    "], [HEAD + "a)", "    return y"], []),
        ([HEAD, "z"], [HEAD + "a)", "zz"], []),
    ],
)
def test_what_was_not(text: list[str], drawn: list[str], below: list[str]) -> None:
    assert not is_suggested(_seen(text, drawn, below), [ITEM])
