"""Counts on disk: added up over processes, nothing but numbers, no harm from damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference.api import FinishReason, GenerationResult, Timings
from lsp_server.statistics import COUNTS, FORMAT, WINDOW, Statistics, Totals


def result(tokens: int) -> GenerationResult:
    return GenerationResult(
        "text", tuple(range(tokens)), FinishReason.STOP_TOKEN, 100, 60, 0, 0, 0, Timings()
    )


def test_two_processes_add_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "home" / "statistics.json"
    one, other = Statistics(path), Statistics(path)
    one.answered("model", "", 12.4)
    one.generated(result(7), prefetch=False)
    one.generated(result(0), prefetch=False)
    other.answered("model", "", 30)
    other.answered("none", "filtered:blank", 5)
    other.generated(result(3), prefetch=True)
    other.count("acceptedWord")
    assert one.totals().counts["requests"] == 1
    assert one.save() and other.save() and one.save()
    totals = Totals.read(path)
    assert totals.counts == {
        **dict.fromkeys(COUNTS, 0),
        "requests": 3,
        "shown": 2,
        "newPromptTokens": 40,
        "decodedTokens": 7,
        "prefetchPromptTokens": 40,
        "prefetchDecodedTokens": 3,
        "acceptedWord": 1,
    }
    assert totals.reasons == {"filtered:blank": 1} and totals.sources == {"model": 2}
    assert totals.latency_ms == [12, 30]
    assert one.totals() == totals
    assert "text" not in path.read_text()


def test_the_window_of_times_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    statistics = Statistics(path)
    for ms in range(WINDOW + 100):
        statistics.answered("cache", "", ms)
    statistics.save()
    statistics.answered("cache", "", 10_000)
    statistics.save()
    times = Totals.read(path).latency_ms
    assert len(times) == WINDOW and times[-1] == 10_000 and times[0] == 101
    report = Totals(latency_ms=[5, 1, 9, 7]).report()
    assert report["latencyMs"] == {"p50": 7, "p95": 9}
    assert Totals().report()["latencyMs"] == {"p50": None, "p95": None}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        json.dumps({"format": FORMAT + 1, "counts": {"shown": 3}}).encode(),
        json.dumps({"format": FORMAT, "counts": 3, "reasons": [], "latencyMs": {"a": 1}}).encode(),
        json.dumps(
            {
                "format": FORMAT,
                "counts": {"shown": -1, "unknown": 2, "requests": True},
                "reasons": {"/home/name": 1, "x": "y"},
                "latencyMs": ["a", -1, None],
            }
        ).encode(),
    ],
)
def test_a_damaged_file_counts_as_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "statistics.json"
    path.write_bytes(content)
    assert Totals.read(path) == Totals()
    statistics = Statistics(path)
    statistics.count("acceptedLine", 2)
    assert statistics.save()
    assert Totals.read(path).counts["acceptedLine"] == 2


def test_switched_off_nothing_is_counted_or_written(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    statistics = Statistics(path)
    statistics.enabled = False
    statistics.answered("model", "", 1)
    statistics.generated(result(1), prefetch=False)
    assert statistics.save() and not path.exists()
    assert statistics.totals() == Totals()


def test_a_home_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    statistics = Statistics(tmp_path / "file" / "statistics.json")
    statistics.count("acceptedLine")
    assert not statistics.save()
    assert statistics.totals().counts == {"acceptedLine": 1}
