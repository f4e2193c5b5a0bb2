"""A short soak of the real model, in a process of its own: nothing grows, nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.journal import load
from bench.records import Sample

pytestmark = pytest.mark.model

REPOSITORY = Path(__file__).parents[2]
REQUESTS = 300


def test_three_hundred_requests(real_model: str, tmp_path: Path) -> None:
    """The whole run: draftline bench soak --requests 10000"""
    out = tmp_path / "out.jsonl"
    # Small caches are full before the first fifth; larger ones would still grow. The promise of 400 MB beside weights
    # and caches is for the committed run: it has some 20 MB to spare, which other builds of the libraries may take.
    small = ["--context", "1024", "--kv-budget", "52", "--allowance", "500"]
    more = ["--model", real_model, "--requests", str(REQUESTS), "--out", str(out), *small]
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server", "bench", "soak", *more],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    (results,) = load([out])
    last = [record for record in results.records if isinstance(record, Sample)][-1]
    assert last.requests == REQUESTS and last.failed == 0
