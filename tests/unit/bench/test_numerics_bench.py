"""The numerics bench measures each row in a process of its own, and a row that fails stops no other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.journal import load
from bench.numerics.measure import Extent, measure
from bench.numerics.perplexity import likelihood
from bench.numerics.rows import ROWS, NotInThisVersion, config_for, row_settings
from bench.peers.base import PeerFailed, Usage
from bench.quality.datasets import InfillTask
from bench.records import Answer, Layout
from bench.report.numerics_tables import tables
from inference.api import EngineConfig
from inference.runtime import load_runtime
from lsp_server.cli import main
from lsp_server.completion.options import CompletionOptions
from tests.unit.bench.made_up_records import answer, layout
from tests.unit.bench.quality_tasks import LINE, write_tasks

ROOT = Path(__file__).parents[3]
REPO = str(ROOT / "lsp_server" / "completion")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tiny_home: Path) -> None:
    monkeypatch.delenv("DRAFTLINE_BENCH_DATA", raising=False)


def test_rows_of_a_tiny_model(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    data = str(write_tasks(tmp_path / "data"))
    # A row that no version has.
    monkeypatch.setattr("bench.numerics.rows.ROWS", {**ROWS, "nf4": {"numerics": "nf0"}})
    out = tmp_path / "out.jsonl"
    arguments = ["--model", str(looping_model), "--repo", REPO, "--data", data, "--out", str(out)]
    small = ["--count", "1", "--tokens", "300", "--answers", "2", "--rows", "int8,nf4,fp32"]
    assert main(["bench", "numerics", *arguments, *small]) == 1
    assert "nf4: this version has no numerics 'nf0'" in capsys.readouterr().err
    (results,) = load([out])
    layouts = {record.name: record for record in results.records if isinstance(record, Layout)}
    assert list(layouts) == ["int8", "nf4", "fp32"]
    assert layouts["nf4"].error and not layouts["nf4"].passes
    for name in ("int8", "fp32"):
        found = layouts[name]
        assert found.error == "" and found.tokens == 300
        assert found.nll is not None and 1 < math.exp(found.nll / 300) < 1e5
        assert [rows for rows, _ in found.passes] == [1, 8, 16] and all(ms > 0 for _, ms in found.passes)
        assert len(found.answers) == 2 and all(found.answers)
        assert (found.private_bytes or 0) > 0
        # 3 layers, 2 heads of 16 in float32, keys and values
        assert found.kv_token_bytes == 3 * 2 * 16 * 4 * 2
    assert (layouts["int8"].file_bytes or 0) < (layouts["fp32"].file_bytes or 0)
    answers = [record for record in results.records if isinstance(record, Answer)]
    assert [(each.set, each.numerics) for each in answers] == [
        (name, numerics) for numerics in ("int8", "fp32") for name in ("single-line", "random-span")
    ]
    assert all(each.passed is not None for each in answers)


def test_perplexity_is_that_of_the_logits(looping_model: Path) -> None:
    config = EngineConfig(model=str(looping_model), numerics="fp32", context=256)
    runtime = load_runtime(config, lambda message, fraction: None)
    tokens = [7 * n % 500 for n in range(150)]
    found = likelihood(runtime.decoder, tokens, window=64, chunk=16)
    assert found.tokens == 149
    expected = 0.0
    for start in range(0, 149, 64):
        part = tokens[start : start + 65]
        with torch.inference_mode():
            logits = runtime.decoder.forward(part[:-1], runtime.decoder.new_slot(64))
        assert logits is not None
        expected += torch.nn.functional.cross_entropy(logits, torch.tensor(part[1:]), reduction="sum").item()
    assert found.nll == pytest.approx(expected, rel=1e-4)


def test_settings_of_this_version_only() -> None:
    base = EngineConfig()
    assert config_for(base, {"numerics": "bf16"}) == EngineConfig(numerics="bf16")
    with pytest.raises(NotInThisVersion, match="no setting 'flavour'"):
        config_for(base, {"flavour": "mint"})
    with pytest.raises(NotInThisVersion, match="no numerics 'int3'"):
        config_for(base, {"numerics": "int3"})
    assert row_settings("mixed", "head=fp32") == {"numerics": "int8", "mixed": "head=fp32"}
    assert row_settings("int8", "head=fp32") == {"numerics": "int8"}


class FakeWorker:
    """Answers what it is asked, and ends at a certain order."""

    def __init__(self, failing: str, error: BaseException) -> None:
        self.failing, self.error, self.ended = failing, error, False

    def ask(self, order: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        if order["do"] == self.failing:
            raise self.error
        return {
            "load": {"file_bytes": 10, "kernel": None},
            "perplexity": {"nll": 2.0, "tokens": 4},
            "passes": {"passes": [[1, 5.0]]},
            "gap": {"text": "x", "ms": 1.0, "tokens": 1, "finish_reason": "length"},
        }[order["do"]]

    def usage(self) -> Usage:
        return Usage(None, 5, 6)

    def end(self) -> None:
        self.ended = True


@pytest.mark.parametrize("failing", ["load", "perplexity", "passes", "gap"])
def test_what_was_measured_before_a_failure_is_kept(failing: str) -> None:
    worker = FakeWorker(failing, PeerFailed("it broke"))
    *answers, found = _measure(worker)
    assert len(answers) == (failing == "perplexity")
    assert isinstance(found, Layout) and found.error == "it broke" and worker.ended
    assert (found.file_bytes == 10) == (failing != "load")
    assert (found.passes == [[1, 5.0]]) == (failing in ("gap", "perplexity"))
    assert found.nll is None
    assert found.private_bytes == 5


def test_a_stop_keeps_the_row() -> None:
    worker = FakeWorker("passes", KeyboardInterrupt())
    found = []
    with pytest.raises(KeyboardInterrupt):
        for record in _measure(worker):
            found.append(record)
    assert [record.error for record in found if isinstance(record, Layout)] == ["stopped"]
    assert worker.ended


def _measure(worker: FakeWorker) -> Any:
    task = InfillTask("0", "a", "c", "b", LINE["test"], "a")
    extent = Extent("text", 4, {"single-line": [task]}, [], 8, 1, tests=False)
    return measure(
        "int8",
        {"numerics": "int8"},
        EngineConfig(),
        CompletionOptions(),
        extent,
        lambda: None,
        lambda name: worker,
    )


def test_the_table() -> None:
    records = [
        layout("fp32", answers=[[1, 2, 3], [4, 5]], nll=2.0, tokens=2),
        layout("int8", answers=[[1, 2, 9], [4, 5]], passes=[[1, 30.0], [8, 40.0]]),
        layout("nf4", error="no kernel\nhere", answers=[], passes=[]),
        answer(numerics="int8", exact=False, passed=True),
        answer(numerics="int8", item="1", exact=True, passed=False),
    ]
    (table,) = tables(records)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["fp32"]["perplexity ↓"] == "2.7183"
    assert rows["fp32"]["same answers as fp32 ↑"] == "100 %"
    assert rows["int8"]["same answers as fp32 ↑"] == "50.0 %"
    assert rows["int8"]["same tokens ↑"] == "80.0 %"
    assert rows["int8"]["8 rows, ms ↓"] == "40.0" and rows["fp32"]["8 rows, ms ↓"] == "–"
    assert rows["int8"]["gaps passed (pass@1) ↑"] == "50.0 %"
    assert "Failed: nf4: no kernel here" in table.note and "nf4 (failed)" in rows
    assert tables([answer()]) == []


@pytest.mark.parametrize(
    "arguments",
    [["--rows", "int3"], ["--count", "0"], ["--tokens", "0"], ["--answers", "0"], ["--repo", "/nowhere"]],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert main(["bench", "numerics", *arguments]) == 2
