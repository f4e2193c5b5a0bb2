"""A part of the exactness bench on the real model: prompts of all kinds, every level of every factor."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.journal import load
from bench.records import Checked
from lsp_server.cli import main

pytestmark = pytest.mark.model

PROMPTS = 60


def test_sixty_prompts(real_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole run: draftline bench exactness --count 1000 --max-prompt 8192 --data DIR"""
    monkeypatch.setattr("bench.commands.exactness.TOKENS", 8)
    out = tmp_path / "out.jsonl"
    more = ["--count", str(PROMPTS), "--max-prompt", "192", "--variants", "2", "--no-restart"]
    assert main(["bench", "exactness", "--model", real_model, "--out", str(out), *more]) == 0
    (results,) = load([out])
    checked = [record for record in results.records if isinstance(record, Checked)]
    assert len(checked) == PROMPTS
    assert all(way.same for record in checked for way in record.answers())
    assert len({record.digest for record in checked}) > PROMPTS / 2
