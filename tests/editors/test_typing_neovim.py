"""Typing into Neovim in tmux, as `python -m tests.editors.typing` does: what is right, not how fast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.editors.conftest import FAKE, StartNeovim
from tests.editors.terminal import TMUX
from tests.editors.typing.neovim import type_into
from tests.editors.typing.plan import make_plan
from tests.editors.typing.result import Result

pytestmark = [pytest.mark.editor, pytest.mark.timeout(120)]


@pytest.mark.skipif(TMUX is None, reason="there is no tmux on the PATH")
def test_keys_arrive_and_ghost_text_fits(nvim_binary: str, tmp_path: Path) -> None:
    # The suggestion is typed along, left, and met again.
    env = {"FAKE_ANSWER": "prices):\n    return 0", "FAKE_STEP_SECONDS": "0.002"}
    plan = make_plan(90, per_second=40)
    result = type_into(nvim_binary, plan, 40, FAKE, "a made-up engine", tmp_path, env)
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
    assert "'' in place of 'b'" in replace(right, buffer="ac").faults()[0]
    assert "'b' in place of ''" in replace(right, buffer="abbc").faults()[0]
    assert replace(right, stale=("x",)).faults() == ["stale ghost text: x"]
    assert replace(right, messages=("E1",)).faults() == ["message: E1"]
    assert replace(right, painted=0).faults() == ["no ghost text was ever painted"]
