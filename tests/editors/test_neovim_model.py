"""Neovim with the real server and the 0.5B model: all that a user does, without a screen and in a terminal.

What the model says is not told beforehand: what is taken must be what was shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.conftest import StartNeovim
from tests.editors.neovim import Talk
from tests.editors.neovim_terminal import TerminalNeovim
from tests.editors.real_weights import linked_home
from tests.editors.terminal import TMUX

pytestmark = [pytest.mark.editor, pytest.mark.model, pytest.mark.timeout(240)]

SERVER = (sys.executable, "-m", "lsp_server", "lsp")
TEXT = """\
def total(prices):
    s = 0
    for p in prices:
        s = s + p
    return s


def mean(prices):
"""
# In Neovim's notation, and in tmux's.
KEYS = {"<Tab>": "Tab", "<M-w>": "M-w", "<Esc>": "Escape", "<CR>": "Enter"}

Press = Callable[[str], None]
Seen = Callable[..., None]


def holds(editor: Talk, text: str) -> None:
    """Wait until the buffer holds just this."""
    editor.until("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')", text)


def play(editor: Talk, press: Press, seen: Seen) -> None:
    """The whole list. ``press`` takes text or one key of KEYS; ``seen`` a name and what must be on screen."""
    phase = "require('draftline.edit').phase()"
    line = "    return total(prices) /"
    before = TEXT + line

    press("Go")
    press(line)
    holds(editor, before)
    ghost = editor.ghost(seconds=60)
    assert editor.text == before
    seen("ghost text", line + ghost.split("\n")[0])

    press("<Tab>")
    holds(editor, before + ghost)
    seen("accepted", line + ghost.split("\n")[0])
    press("<Esc>")
    press("u")
    holds(editor, before)

    press("A")
    again = editor.ghost(seconds=60)
    press("<M-w>")
    editor.until(f"#vim.api.nvim_get_current_line() > {len(line)}")
    word = editor.text.removeprefix(before)
    assert again.startswith(word) and len(word.split()) == 1
    if word != again:
        rest = editor.ghost(seconds=60)
        assert (word + rest).startswith(again) or again.startswith(word + rest)
        seen("a word accepted", line + word + rest.split("\n")[0])
    press("<Esc>")
    press("u")
    holds(editor, before)

    press(":1,5Draftline edit rename s to result")
    press("<CR>")
    editor.until(phase, "waiting", 120)
    assert editor.text == before
    seen("an edit in preview", "    s = 0", "    result = 0", "<CR> accepts, <Esc> rejects")
    press("<Esc>")
    editor.until(phase, None)
    assert editor.text == before
    press(":1,5Draftline edit rename s to result")
    press("<CR>")
    editor.until(phase, "waiting", 120)
    press("<CR>")
    editor.until(phase, None)
    changed = editor.text
    assert "    result = 0\n" in changed and changed.endswith("def mean(prices):\n" + line)
    seen("the edit made", "    result = 0")
    press("u")
    holds(editor, before)

    press("G")
    press("A")
    editor.ghost(seconds=60)
    press("<Esc>")
    press(":Draftline disable")
    press("<CR>")
    editor.until("require('draftline').status()", "Draftline off")
    press("A")
    press(" ")
    holds(editor, before + " ")
    editor.until("require('draftline.suggest').idle()")
    editor.ghost(None)
    seen("switched off", line)
    assert editor.lua("_G.messages") in ([], {})
    assert editor.lua("vim.v.errmsg") == ""


def opened(neovim: StartNeovim, tmp_path: Path, screen: bool) -> Talk:
    editor: Talk = neovim(
        TEXT,
        server=SERVER,
        screen=screen,
        name="prices.py",
        # What is typed is all there shall be.
        before="vim.cmd('filetype indent off') vim.o.autoindent = false",
        DRAFTLINE_HOME=str(linked_home(tmp_path)),
    )
    return editor


def test_without_a_screen(neovim: StartNeovim, tmp_path: Path, real_model: str) -> None:
    editor = opened(neovim, tmp_path, screen=False)
    play(editor, lambda keys: editor.keys(keys), lambda name, *texts: None)


@pytest.mark.skipif(TMUX is None, reason="there is no tmux on the PATH")
def test_in_a_terminal(neovim: StartNeovim, tmp_path: Path, real_model: str) -> None:
    editor = opened(neovim, tmp_path, screen=True)
    assert isinstance(editor, TerminalNeovim)
    terminal = editor.terminal
    screens: list[str] = []

    def press(keys: str) -> None:
        if keys in KEYS:
            terminal.keys(KEYS[keys])
        else:
            terminal.type(keys)

    def seen(name: str, *texts: str) -> None:
        screen = terminal.until(lambda screen: all(text in screen.text for text in texts))
        screens.append(f"{name}\n\n" + "\n".join(f"    {line}".rstrip() for line in screen.lines))

    play(editor, press, seen)
    # For the README: what was on screen.
    if directory := os.environ.get("DRAFTLINE_SCREENS"):
        version = str(editor.lua("tostring(vim.version())"))
        Path(directory, f"neovim-{version}.txt").write_text("\n\n".join(screens) + "\n", encoding="utf-8")
