"""The tables of bench/RESULTS.md are made from the results that are committed beside it."""

from __future__ import annotations

from pathlib import Path

from bench.journal import load
from bench.report.document import inside
from bench.report.tables import markdown

BENCH = Path(__file__).parents[3] / "bench"


def test_committed_results() -> None:
    """To make them anew: draftline bench report bench/results/*.jsonl --out bench/RESULTS.md"""
    files = sorted((BENCH / "results").glob("*.jsonl"), key=lambda path: path.name)
    assert files, "bench/results has no results"
    written = (BENCH / "RESULTS.md").read_text(encoding="utf-8")
    assert inside(written) == markdown(load(files))
