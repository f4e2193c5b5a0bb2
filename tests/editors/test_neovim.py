"""The Neovim plugin in a real Neovim, with a real server whose engine is made up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.conftest import SCRIPTED, StartNeovim
from tests.editors.neovim import PLUGIN, Neovim

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
    return counts.get("acceptedWhole", 0)


def quiet(editor: Neovim) -> None:
    """The editor asks for nothing and shows nothing."""
    editor.until("require('draftline.suggest').idle()")
    editor.ghost(None)


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


def test_whole_acceptance_reaches_the_server(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    assert accepted(editor) == 0
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_buf_line_count(0)", 3)
    editor.run("_G.counts = nil return 1")
    assert accepted(editor) == 1


def test_accept_by_words_and_lines(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.keys("<M-w>")
    editor.ghost(ANSWER[len("total") :])
    assert editor.lua("vim.api.nvim_get_current_line()") == "    total"
    editor.keys("<M-w>")
    editor.ghost(ANSWER[len("total =") :])
    editor.keys("<M-l>")
    editor.ghost("\n    return total")
    assert editor.lua("vim.api.nvim_get_current_line()") == "    total = sum(prices)"
    editor.keys("<M-l>")
    editor.until("vim.api.nvim_buf_line_count(0)", 3)
    assert editor.text == WHOLE.rstrip("\n")
    # Each piece is undone by itself.
    editor.keys("<Esc>u")
    editor.until("vim.api.nvim_buf_line_count(0)", 2)
    assert editor.text == "def f(prices):\n    total = sum(prices)"


def test_tab_falls_through(neovim: StartNeovim) -> None:
    editor = neovim("", server=SCRIPTED, options="automatic = false", name="main.txt")
    editor.keys("i<Tab>x")
    editor.until("vim.api.nvim_get_current_line()", "\tx")


@pytest.mark.parametrize(
    "mapping",
    [
        "vim.keymap.set('i', '<Tab>', 'plain')",
        "vim.keymap.set('i', '<Tab>', function() return 'plain' end, { expr = true })",
        "vim.keymap.set('i', '<Plug>(mine)', 'plain')"
        " vim.keymap.set('i', '<Tab>', '<Plug>(mine)', { remap = true })",
        "vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ 'plain' }, 'c', false, true) end)",
    ],
)
def test_tab_falls_through_to_what_it_did_before(neovim: StartNeovim, mapping: str) -> None:
    editor = neovim("", server=SCRIPTED, options="automatic = false", before=mapping)
    editor.keys("i<Tab>x")
    editor.until("vim.api.nvim_get_current_line()", "plainx")


def test_typing_along_shortens_and_typing_else_hides(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    # No new answers from here on: what is left is worked out in the editor.
    editor.run("require('draftline.config').values.automatic = false return 1")
    editor.keys("tot")
    editor.ghost(ANSWER[3:])
    editor.keys("<BS>")
    editor.ghost(ANSWER[2:])
    editor.keys("x")
    editor.ghost(None)
    assert editor.lua("require('draftline').visible()") is False
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_get_current_line():find('x%s')")


def test_typing_along_over_a_line_end(neovim: StartNeovim) -> None:
    editor = opened(neovim, before="vim.o.autoindent = true")
    editor.run("require('draftline.config').values.automatic = false return 1")
    editor.keys("total = sum(prices)<CR>")
    editor.ghost("return total")
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_get_current_line()", "    return total")
    assert editor.text == WHOLE.rstrip("\n")


def test_leaving_insert_mode_hides(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.keys("<Esc>")
    editor.ghost(None)
    editor.keys("A")
    editor.ghost(ANSWER)


def test_moving_away_hides(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.run("require('draftline.config').values.automatic = false return 1")
    editor.keys("<Left>")
    editor.ghost(None)


def test_dismiss(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.keys("<C-]>")
    editor.ghost(None)
    # The second one falls through to what Neovim does with it: nothing.
    editor.keys("<C-]>")
    quiet(editor)
    assert editor.text == START.rstrip("\n")
    editor.keys("t")
    editor.ghost(ANSWER[1:])


def test_toggle_and_one_buffer(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.keys("<Cmd>Draftline toggle<CR>")
    editor.ghost(None)
    assert editor.lua("require('draftline').status()") == "Draftline off"
    editor.keys("t")
    editor.until("vim.api.nvim_get_current_line()", "    t")
    quiet(editor)
    editor.keys("<BS><Cmd>Draftline enable<CR>")
    editor.ghost(ANSWER)
    editor.keys("<Esc><Cmd>let b:draftline = v:false<CR>A")
    editor.until("vim.api.nvim_get_mode().mode", "i")
    quiet(editor)


def test_characters_of_several_bytes(neovim: StartNeovim) -> None:
    editor = neovim("größe = '😀' + \n", FAKE_ANSWER="länge('ä😀')")
    editor.keys("A")
    editor.ghost("länge('ä😀')")
    editor.keys("lä")
    editor.ghost("nge('ä😀')")
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_get_current_line()", "größe = '😀' + länge('ä😀')")


# Looks at the screen every millisecond: the cursor's line with the ghost text must read as <…> behind the
# place that the ghost text says it was made for.
WATCH = """
_G.seen, _G.wrong = 0, {}
local timer = vim.uv.new_timer()
timer:start(0, 1, vim.schedule_wrap(function()
  local text, row, col = _G.ghost()
  if not text then return end
  _G.seen = _G.seen + 1
  local cursor = vim.api.nvim_win_get_cursor(0)
  local before = vim.api.nvim_get_current_line():sub(1, cursor[2])
  local whole = before .. text
  local made = whole:sub(1, (#whole - 2) / 2)
  if row ~= cursor[1] - 1 or col ~= cursor[2] or whole ~= made .. '<' .. made .. '>' then
    table.insert(_G.wrong, { before, text, row, col, cursor })
  end
end))
return 1
"""


def test_nothing_stale_is_ever_shown(neovim: StartNeovim) -> None:
    editor = neovim("\n\n", server=SCRIPTED, SUGGEST_SECONDS="0.015")
    editor.run(WATCH)
    # Sixty characters in one go from within, some of them along the suggestion, with pauses of 0 to 36 ms.
    editor.run(
        """
        vim.api.nvim_input('i')
        local typed = 'abc = <abc> + one.two(three<) # nothing that was asked for__'
        local at = 0
        local function key()
          at = at + 1
          if at > #typed then _G.done = true return end
          vim.api.nvim_input(typed:sub(at, at) == '<' and '<lt>' or typed:sub(at, at))
          vim.defer_fn(key, (at * 7) % 37)
        end
        vim.defer_fn(key, 50)
        return 1
        """
    )
    editor.until("_G.done")
    line = "abc = <abc> + one.two(three<) # nothing that was asked for__"
    assert len(line) == 60
    editor.until("vim.api.nvim_get_current_line()", line)
    editor.ghost(f"<{line}>")
    assert editor.lua("_G.wrong") in ([], {})
    assert editor.lua("_G.seen") > 20


def test_changes_elsewhere_take_it_off(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.run("require('draftline.config').values.automatic = false return 1")
    # Seen in the same moment: nothing is drawn between a change and the check.
    shown = "vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'def g(x):' }) return _G.ghost() or 'nothing'"
    assert editor.run(shown) == "nothing"
    assert editor.lua("require('draftline').visible()") is False


def test_choosing_among_several(neovim: StartNeovim) -> None:
    editor = neovim("\n", server=SCRIPTED)
    editor.keys("iab")
    editor.ghost("<ab>")
    editor.keys("<M-]>")
    editor.ghost("[ab]")
    editor.keys("<M-]>")
    editor.ghost("(ab)")
    editor.keys("<M-]>")
    editor.ghost("<ab>")
    editor.keys("<M-[>")
    editor.ghost("(ab)")
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_get_current_line()", "ab(ab)")


def test_asking_by_hand_only(neovim: StartNeovim) -> None:
    editor = neovim(START, FAKE_ANSWER=ANSWER, options="automatic = false")
    editor.keys("2GA")
    editor.until("vim.api.nvim_get_mode().mode", "i")
    quiet(editor)
    editor.keys("<M-]>")
    editor.ghost(ANSWER)


def test_menus_come_first(neovim: StartNeovim) -> None:
    editor = opened(neovim, before="vim.o.completeopt = 'menuone,noselect'")
    editor.keys("<Cmd>call complete(col('.'), ['total', 'other'])<CR>")
    editor.until("vim.fn.pumvisible()", 1)
    editor.ghost(None)
    assert editor.lua("require('draftline').visible()") is False
    editor.keys("<C-e>")
    editor.until("vim.fn.pumvisible()", 0)
    editor.ghost(ANSWER)


WORDS = "vim.o.completeopt = 'menuone,noselect' "
# As many have it.
TAB = (
    "vim.keymap.set('i', '<Tab>', function() return vim.fn.pumvisible() == 1 and '<C-n>' or 'plain' end,"
    " { expr = true })"
)


def test_a_menu_of_words_has_its_keys(neovim: StartNeovim) -> None:
    editor = opened(neovim, text=START + "totals = 1\n", before=WORDS + TAB)
    editor.keys("tot")
    editor.ghost(ANSWER[3:])
    editor.keys("<C-x><C-n>")
    editor.until("vim.fn.pumvisible()", 1)
    quiet(editor)
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_get_current_line()", "    totals")
    assert editor.lua("vim.fn.pumvisible()") == 1
    quiet(editor)
    # With the menu gone there are suggestions again, and the key takes them.
    editor.keys("<C-y>")
    editor.until("vim.fn.pumvisible()", 0)
    editor.ghost(ANSWER)
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_buf_line_count(0)", 4)
    assert editor.text == f"def f(prices):\n    totals{ANSWER}\ntotals = 1"


def test_an_answer_that_comes_while_a_menu_is_open(neovim: StartNeovim) -> None:
    editor = neovim("total\n\n", server=SCRIPTED, before=WORDS, SUGGEST_SECONDS="0.3")
    editor.keys("2GAto<C-x><C-n>")
    editor.until("vim.fn.pumvisible()", 1)
    quiet(editor)
    assert editor.lua("vim.fn.pumvisible()") == 1
    editor.keys("<C-e>")
    editor.until("vim.fn.pumvisible()", 0)
    editor.ghost("<to>")


def test_progress_of_loading_and_failure(neovim: StartNeovim) -> None:
    editor = neovim(START, ready=False, FAKE_LOAD_SECONDS="1.5", FAKE_ANSWER=ANSWER)
    editor.until("require('draftline').status():match('^Draftline %d+%%$')")
    editor.keys("2GA")
    # What was asked too early is asked again.
    editor.ghost(ANSWER)
    assert editor.lua("require('draftline').status()") == "Draftline"


def test_failure_to_load(neovim: StartNeovim) -> None:
    editor = neovim(START, ready=False, FAKE_FAIL="1")
    info = editor.until(
        "require('draftline').status_info().kind == 'error' and require('draftline').status_info()"
    )
    assert "draftline model fetch" in info["next_step"]
    assert editor.lua("require('draftline').status()") == "Draftline error"


def test_missing_server(neovim: StartNeovim) -> None:
    before = (
        "vim.env.PATH = '' require('draftline.server_command').venv = function() return '/none/draftline' end"
    )
    editor = neovim(START, server=None, before=before, ready=False)
    messages = editor.until("#_G.messages > 0 and _G.messages")
    assert len(messages) == 1
    assert "no `draftline` on the PATH" in messages[0] and "pip install" in messages[0]
    health = checked(editor)
    assert "the server was not found" in health and "cmd = " in health
    named = neovim(START, server=("/none/draftline", "lsp"), ready=False)
    assert "/none/draftline, which cannot be run" in named.until("_G.messages[1]")


def checked(editor: Neovim) -> str:
    """What :checkhealth says."""
    editor.keys("<Esc><Cmd>checkhealth draftline<CR>")
    editor.until("vim.bo.filetype", "checkhealth")
    return editor.text


def test_health(neovim: StartNeovim) -> None:
    editor = neovim(START)
    health = checked(editor)
    assert "ERROR" not in health
    assert "fake_server.py lsp (setting)" in health and "state: ready" in health
    assert "<Tab>: accept" in health


def test_commands(neovim: StartNeovim) -> None:
    editor = neovim(START, FAKE_ANSWER=ANSWER)
    names = editor.lua("vim.fn.getcompletion('Draftline ', 'cmdline')")
    assert {"enable", "disable", "toggle", "restart", "status", "log", "statistics", "model", "edit"} <= set(
        names
    )
    assert editor.lua("vim.fn.getcompletion('Draftline st', 'cmdline')") == ["statistics", "status"]
    assert "qwen2.5-coder-0.5b" in editor.lua("vim.fn.getcompletion('Draftline model ', 'cmdline')")
    editor.keys("<Cmd>Draftline status<CR>")
    assert "this buffer: followed" in editor.until("_G.messages[1]")
    editor.keys("<Cmd>Draftline nonsense<CR>")
    assert "no command `nonsense`" in editor.until("_G.messages[2]")
    process = editor.lua("require('draftline.server').id")
    editor.keys("<Cmd>Draftline restart<CR>")
    editor.until(f"require('draftline.server').id and require('draftline.server').id ~= {process}")
    editor.until("require('draftline').status_info().kind", "ready")
    editor.keys("2GA")
    editor.ghost(ANSWER)
    editor.keys("<Esc><Cmd>Draftline statistics<CR>")
    editor.until("vim.api.nvim_get_current_line():find('Draftline')")
    assert "counts" in editor.text


def kill_server(editor: Neovim) -> int:
    """As if it had crashed; its number."""
    pid: int = editor.run("local list = vim.api.nvim_get_proc_children(vim.fn.getpid()) return list[1]")
    os.kill(pid, signal.SIGKILL)
    return pid


# Neovim tells of the end of a server too.
OURS = "vim.tbl_filter(function(text) return vim.startswith(text, 'Draftline: ') end, _G.messages)"


SHOWN = f"(_G.ghost()) == [[{ANSWER}]]"
DISABLED = "(_G.ghost()) == nil and require('draftline').status_info().reason == 'disabled'"


def asked_until(editor: Neovim, keys: str, condition: str) -> None:
    """Ask by these keys until this holds: settings reach the server in their own time."""
    for _ in range(20):
        editor.keys(keys)
        with contextlib.suppress(AssertionError):
            editor.until(condition, seconds=1)
            return
    raise AssertionError(f"never: {condition}; the suggestion is {editor.lua('(_G.ghost())')!r}")


def test_a_crashed_server_is_started_again(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    first = kill_server(editor)
    # What the server said about the text went with it.
    editor.ghost(None)
    assert "signal 9. It is started again" in editor.until(f"({OURS})[1]")
    editor.until("require('draftline').status_info().kind", "ready")
    assert editor.lua("vim.api.nvim_get_proc_children(vim.fn.getpid())[1]") != first
    editor.ghost(ANSWER)
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_buf_line_count(0)", 3)
    assert editor.text == WHOLE.rstrip("\n")


def test_a_server_that_crashes_again_and_again_is_left_alone(neovim: StartNeovim) -> None:
    editor = neovim("abc\n", server=SCRIPTED)
    for crash in range(1, 5):
        editor.until("require('draftline').status_info().kind", "ready")
        kill_server(editor)
        editor.until(f"#{OURS} == {crash}")
    info = editor.until(
        "require('draftline').status_info().kind == 'error' and require('draftline').status_info()"
    )
    assert "signal 9" in info["message"] and ":Draftline restart" in info["next_step"]
    assert ":Draftline restart" in editor.lua(f"({OURS})[4]")
    editor.keys("<Cmd>Draftline restart<CR>A")
    editor.ghost("<abc>")


def test_a_server_that_never_worked_is_not_tried_again(neovim: StartNeovim) -> None:
    editor = neovim(START, server=(sys.executable, "-c", "raise SystemExit(3)"), ready=False)
    info = editor.until(
        "require('draftline').status_info().kind == 'error' and require('draftline').status_info()"
    )
    assert "status 3" in info["message"]
    assert "`:Draftline restart` starts it again" in editor.until(f"({OURS})[1]")
    editor.until("#vim.lsp.get_clients()", 0)


def test_an_edit_ends_with_its_server(neovim: StartNeovim) -> None:
    editor = editing(neovim, EDIT, EDIT_HOLD="1")
    phase(editor, "writing")
    kill_server(editor)
    phase(editor, None)
    assert editor.text + "\n" == OLD
    editor.until("table.concat(_G.messages):find('before the edit was written')")


def test_a_server_that_comes_later(neovim: StartNeovim, tmp_path: Path) -> None:
    program = tmp_path / "draftline"
    editor = neovim("abc\n", server=(str(program),), ready=False)
    assert "cannot be run" in editor.until("_G.messages[1]")
    program.write_text("#!/bin/sh\nexec " + " ".join(SCRIPTED) + "\n")
    program.chmod(0o755)
    editor.keys("<Cmd>Draftline restart<CR>A")
    editor.ghost("<abc>")


def test_settings_change_while_the_server_runs(neovim: StartNeovim) -> None:
    editor = opened(neovim)
    editor.run("require('draftline').set('enable', false)")
    asked_until(editor, "<Esc>A", DISABLED)
    editor.run("require('draftline').set('enable', nil)")
    asked_until(editor, "<Esc>A", SHOWN)


def test_a_second_setup_holds_from_then_on(neovim: StartNeovim) -> None:
    editor = opened(neovim, before="vim.keymap.set('i', '<Tab>', 'plain')")
    command = editor.lua("require('draftline.config').values.cmd")
    again = {"cmd": command, "settings": {"enable": False}, "keys": {"accept": "<C-y>"}, "automatic": False}
    editor.run(f"require('draftline').setup(vim.json.decode([==[{json.dumps(again)}]==]))")
    quiet(editor)
    asked_until(editor, "<M-]>", DISABLED)
    editor.run("require('draftline').set('enable', true)")
    asked_until(editor, "<M-]>", SHOWN)
    editor.keys("<C-y>")
    editor.until("vim.api.nvim_buf_line_count(0)", 3)
    # The key that is not ours any more does what it did before us.
    editor.keys("<Tab>")
    editor.until("vim.api.nvim_get_current_line()", "    return totalplain")
    assert editor.lua("#vim.lsp.get_clients()") == 1


def test_one_server_for_several_folders(neovim: StartNeovim, tmp_path: Any) -> None:
    editor = opened(neovim)
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "a.py").write_text(START)
        editor.keys(f"<Esc><Cmd>edit {tmp_path / name / 'a.py'}<CR>")
        editor.until("require('draftline.server').client_of(vim.api.nvim_get_current_buf()) ~= nil")
        editor.keys("2GA")
        editor.ghost(ANSWER)
    assert editor.lua("#vim.lsp.get_clients()") == 1


OLD = "def total(prices):\n    s = 0\n    for p in prices:\n        s = s + p\n    return s\n"
NEW = OLD.replace("s = s + p", "s += p").replace("def total(prices):", 'def total(prices):\n    """Sum."""')
HUNKS: list[dict[str, Any]] = [
    {"startLine": 1, "endLine": 1, "lines": ['    """Sum."""'], "spans": []},
    {"startLine": 3, "endLine": 4, "lines": ["        s += p"], "spans": [[0, 10, 12]]},
]


def place(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


EDITS = [
    {"range": {"start": place(1, 0), "end": place(1, 0)}, "newText": '    """Sum."""\n'},
    {"range": {"start": place(3, 8), "end": place(3, 17)}, "newText": "s += p"},
]
EDIT = {
    "edit": {"documentChanges": [{"edits": EDITS}]},
    "summary": "did: INSTRUCTION",
    "flags": [],
    "reason": "",
    "message": "",
    "hunks": HUNKS,
}
PARTIALS = [
    {"hunks": HUNKS[:1], "open": None, "kept": 2, "lines": 5},
    {"hunks": [], "open": {"startLine": 3, "lines": ["        s +="]}, "kept": 3, "lines": 5},
]

# All that the preview shows: virtual text, virtual lines, and the rows that are marked.
PREVIEW = """(function()
  local id, found = vim.api.nvim_create_namespace('draftline.edit'), { rows = {}, lines = {}, notes = {} }
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })) do
    local function text(chunks)
      return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks))
    end
    if mark[4].line_hl_group then table.insert(found.rows, mark[2]) end
    for _, line in ipairs(mark[4].virt_lines or {}) do table.insert(found.lines, text(line)) end
    if mark[4].virt_text then table.insert(found.notes, text(mark[4].virt_text)) end
  end
  return found
end)()"""


def editing(neovim: StartNeovim, answer: dict[str, Any], **more: str) -> Neovim:
    editor = neovim(
        OLD,
        server=SCRIPTED,
        EDIT_ANSWER=json.dumps(answer),
        EDIT_PARTIALS=json.dumps(PARTIALS),
        **more,
    )
    editor.keys("ggVG:Draftline edit use +=, please<CR>")
    return editor


def phase(editor: Neovim, wanted: str | None) -> None:
    editor.until("require('draftline.edit').phase()", wanted)


def test_edit_accepted_and_undone_in_one_step(neovim: StartNeovim) -> None:
    editor = editing(neovim, EDIT)
    phase(editor, "waiting")
    shown = editor.lua(PREVIEW)
    assert shown["rows"] == [3]
    assert shown["lines"] == ['    """Sum."""', "        s += p"]
    assert "did: use +=, please" in shown["notes"][0] and "<CR> accepts" in shown["notes"][0]
    assert editor.text + "\n" == OLD
    editor.keys("<CR>")
    editor.until("vim.api.nvim_buf_line_count(0)", 6)
    assert editor.text + "\n" == NEW
    phase(editor, None)
    assert editor.lua(PREVIEW)["lines"] in ([], {})
    # The keys are what they were.
    assert editor.lua("vim.fn.maparg('<CR>', 'n')") == ""
    editor.keys("u")
    editor.until("vim.api.nvim_buf_line_count(0)", 5)
    assert editor.text + "\n" == OLD


def test_edit_rejected_while_written_and_after(neovim: StartNeovim) -> None:
    editor = editing(neovim, EDIT, EDIT_HOLD="1")
    phase(editor, "writing")
    editor.until(f'vim.deep_equal({PREVIEW}.lines, {{ \'    """Sum."""\', \'        s +=\' }})')
    assert "3 of 5 lines" in editor.lua(PREVIEW)["notes"][0]
    assert editor.lua("require('draftline').status()") == "Draftline …"
    editor.keys("<Esc>")
    phase(editor, None)
    assert editor.lua(PREVIEW)["lines"] in ([], {})
    assert editor.text + "\n" == OLD
    editor.keys("ggVG:Draftline edit again<CR>")
    phase(editor, "writing")
    editor.keys(":Draftline reject<CR>")
    phase(editor, None)
    assert editor.text + "\n" == OLD


def test_doubtful_edits_are_asked_about(neovim: StartNeovim) -> None:
    doubt = {**EDIT, "flags": ["parse-error"], "message": "the code would no longer parse"}
    editor = editing(neovim, doubt)
    phase(editor, "waiting")
    assert "the code would no longer parse" in editor.lua(PREVIEW)["notes"][0]
    editor.run(
        "vim.ui.select = function(_, options, done) _G.question, _G.done = options.prompt, done end return 1"
    )
    editor.keys("<CR>")
    assert "no longer parse. Apply it?" in editor.until("_G.question")
    assert editor.text + "\n" == OLD
    editor.run("_G.done('Apply anyway') return 1")
    assert editor.text + "\n" == NEW


def test_an_edit_of_a_text_that_changed_is_dropped(neovim: StartNeovim) -> None:
    editor = editing(neovim, EDIT)
    phase(editor, "waiting")
    editor.keys("ggx")
    phase(editor, None)
    assert "changed meanwhile" in editor.until("_G.messages[1]")
    assert editor.text + "\n" == OLD[1:]


def test_no_edit_says_why(neovim: StartNeovim) -> None:
    nothing = {
        **EDIT,
        "edit": None,
        "hunks": [],
        "reason": "unchanged",
        "message": "The model left the code as it is.",
    }
    editor = editing(neovim, nothing)
    assert "left the code as it is" in editor.until("_G.messages[1]")
    phase(editor, None)


def test_native_backend(neovim: StartNeovim, nvim_binary: str) -> None:
    editor = neovim(START, FAKE_ANSWER=ANSWER, options="backend = 'native'")
    if not editor.lua("vim.lsp.inline_completion ~= nil"):
        assert "needs Neovim 0.12" in editor.until("_G.messages[1]")
        return
    namespace = "nvim.lsp.inline_completion"
    editor.keys("2GA")
    editor.ghost(ANSWER, namespace)
    # Before Neovim asks again: what was typed along must not come twice.
    editor.keys("tot<Tab>")
    editor.until("vim.api.nvim_buf_line_count(0)", 3)
    assert editor.text == WHOLE.rstrip("\n")
    editor.keys("<Esc>u2GA<M-w>")
    editor.keys("<Cmd>Draftline disable<CR>")
    editor.ghost(None, namespace)


def test_wrong_options_are_told(neovim: StartNeovim) -> None:
    editor = neovim(START, options="debounce_ms = 'fast'", server=None, ready=False)
    assert "`debounce_ms` must be a number" in editor.until("_G.messages[1]")


def test_files_of_the_plugin_are_documented() -> None:
    text = (PLUGIN / "doc" / "draftline.txt").read_text(encoding="utf-8")
    config = (PLUGIN / "lua" / "draftline" / "config.lua").read_text(encoding="utf-8")
    defaults = config.partition("M.defaults = {")[2].partition("\n}\n")[0]
    defaults = re.sub(r"^ *--.*$", "", defaults, flags=re.MULTILINE)
    names = [
        line.split(" =")[0].strip()
        for line in defaults.splitlines()
        if line.startswith("  ") and " = " in line
    ]
    assert len(names) > 10
    for name in names:
        assert name in text, name
