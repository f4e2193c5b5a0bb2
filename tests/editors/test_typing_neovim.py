"""Typing into Neovim in tmux, as `python -m tests.editors.typing` does: what is right, not how fast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.editors.conftest import FAKE, StartNeovim
from tests.editors.terminal import TMUX
from tests.editors.typing.neovim import type_into
from tests.editors.typing.plan import TYPED, make_plan
from tests.editors.typing.result import Result, table

pytestmark = [pytest.mark.editor, pytest.mark.timeout(120)]


@pytest.mark.skipif(TMUX is None, reason="there is no tmux on the PATH")
def test_keys_arrive_and_ghost_text_fits(nvim_binary: str, tmp_path: Path) -> None:
    # The suggestion is typed along, left, and met again.
    env = {"FAKE_ANSWER": "    totals = {}\n    for_all = [sum(prices)]", "FAKE_STEP_SECONDS": "0.002"}
    plan = make_plan(90, per_second=20)
    result = type_into(nvim_binary, plan, FAKE, "a made-up engine", tmp_path, env)
    assert result.faults() == []
    assert len(result.milliseconds) == 90
    assert result.suggestions > 2


@pytest.mark.skipif(TMUX is None, reason="there is no tmux on the PATH")
def test_the_witness_sees_stale_ghost_text(neovim: StartNeovim) -> None:
    witness = Path(__file__).parent / "typing" / "witness.lua"
    editor = neovim("total = \n", screen=True, FAKE_ANSWER="sum(prices)")
    editor.run(f"_G.witness = dofile([[{witness}]]) _G.witness.watch()")
    editor.terminal.type("A")
    editor.ghost("sum(prices)")
    editor.until("_G.witness.painted > 0")
    assert editor.lua("#_G.witness.stale") == 0
    # As it would be if the text were left behind by a key.
    editor.run(
        "local id = vim.api.nvim_create_namespace('draftline')"
        " vim.api.nvim_buf_clear_namespace(0, id, 0, -1)"
        " local options = { virt_text = { { 'um(prices)' } }, virt_text_pos = 'inline' }"
        " vim.api.nvim_buf_set_extmark(0, id, 0, 8, options)"
    )
    editor.until("_G.witness.stale[1]", '"um(prices)" behind "total = "')


def test_faults_name_what_is_wrong() -> None:
    right = Result("an editor", "a server", "cores", "abc", "abc", 12, (1.0, 2.0, 30.0), 3, 3, 3)
    assert right.faults() == []
    assert (right.percentile(50), right.percentile(95)) == (2.0, 30.0)
    dropped, doubled = replace(right, buffer="ac"), replace(right, buffer="abbc")
    assert "'' in place of 'b'" in dropped.faults()[0]
    assert "'b' in place of ''" in doubled.faults()[0]
    assert [(each.dropped, each.doubled) for each in (right, dropped, doubled)] == [(0, 0), (1, 0), (0, 1)]
    assert replace(right, stale=("x",)).faults() == ["stale: x"]
    assert replace(right, messages=("E1",)).faults() == ["message: E1"]
    assert replace(right, painted=0).faults() == ["no ghost text was ever painted"]


def test_the_table_has_a_line_for_each_run() -> None:
    right = Result("an editor", "a server", "one core", "abc", "abc", 12, (1.0, 2.0, 30.0), 5, 4, 3)
    wrong = replace(right, editor="another", buffer="abbc", stale=("x",), messages=("E1", "E2"))
    lines = table([right, wrong])
    assert [line.split() for line in lines[1:3]] == [
        ["an", "editor", "3", "0", "0", "0", "0", "4", "2.0", "30.0"],
        ["another", "3", "0", "1", "1", "2", "4", "2.0", "30.0"],
    ]
    assert lines[3] == "an editor: one core; 5 requests, painted 3 times"
    assert lines[5:] == [f"another: {fault}" for fault in wrong.faults()]


def test_plans_of_editors_that_indent_come_to_the_same_text() -> None:
    all_keys, few = make_plan(len(TYPED), 12), make_plan(300, 12, indents=True)
    assert all_keys.typed == TYPED
    assert TYPED.startswith(few.typed) and len(few.typed) > 300
    assert [len(each.keys) for each in (all_keys, few)] == [len(TYPED), 300]
    # A key is the first character of what it makes.
    assert few.states[0] == "\n    " and few.keys[0] == "\n"
    with pytest.raises(ValueError, match="not 0"):
        make_plan(0, 12)
