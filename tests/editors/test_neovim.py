"""The Neovim plugin in a real Neovim, with a real server whose engine is made up."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pytest

from tests.editors.conftest import SCRIPTED, StartNeovim
from tests.editors.neovim import Neovim

pytestmark = [pytest.mark.editor, pytest.mark.timeout(120)]

ANSWER = "total = sum(prices)\n    return total"
START = "def f(prices):\n    \n"
WHOLE = "def f(prices):\n    total = sum(prices)\n    return total\n"


def opened(neovim: StartNeovim, answer: str = ANSWER, text: str = START, **more: Any) -> Neovim:
    """An editor in insert mode at the end of the second line, with the suggestion on screen."""
    editor = neovim(text, FAKE_ANSWER=answer, **more)
    editor.keys("2GA")
    editor.ghost(answer)
    return editor


def accepted(editor: Neovim) -> int:
    """How many whole suggestions the server counts."""
    editor.run(
        "require('draftline.compat').call(require('draftline.server').client(), 'request',"
        " 'draftline/statistics', vim.empty_dict(), function(_, answer) _G.counts = answer.counts end, 0)"
    )
    counts: dict[str, int] = editor.until("_G.counts")
    return sum(count for name, count in counts.items() if "accepted" in name.lower())


def test_accept_all_and_undo(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    assert editor.run("local _, row, col = _G.ghost() return { row, col }") == [1, 4]
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_buf_line_count(0)", 3)
    assert editor.text == WHOLE.rstrip("\n")
    assert editor.lua("vim.api.nvim_win_get_cursor(0)") == [3, len("    return total")]
    editor.keys("<Esc>u")
    editor.until("vim.api.nvim_buf_line_count(0)", 2)
    assert editor.text == START.rstrip("\n")
