"""Forward passes, prompts and memory against the machine's limits."""

from __future__ import annotations

import pytest

from bench.records import Bandwidth
from bench.report import breakdown
from bench.report.roofline import Roofline
from bench.report.roofline_tables import tables
from tests.unit.bench.made_up_records import forward, memory, part, prefill

# 500 MB in 25 ms.
MACHINE = Bandwidth(bytes_per_second=20e9, threads=2, int8_ops_per_second=400e9, float_ops_per_second=100e9)


def test_forwards_against_the_floor() -> None:
    measured = Roofline(
        [
            MACHINE,
            forward(1, 40.0, repeat=0),
            forward(1, 60.0, repeat=1),
            forward(1, 50.0, repeat=2),
            forward(8, 75.0, linear_ms=None),
            forward(1, 100.0, context=2048),
        ]
    )
    one, eight = measured.by_rows()
    assert (one.rows, one.ms, one.linear_ms, one.floor_ms, one.over_floor) == (1, 50.0, 25.0, 25.0, 2.0)
    assert (eight.ms, eight.linear_ms, eight.over_one) == (75.0, None, 1.5)
    assert [(cost.context, cost.ms) for cost in measured.by_context()] == [(256, 50.0), (2048, 100.0)]


def test_one_context_is_no_table_of_contexts() -> None:
    assert Roofline([forward(1, 40.0), forward(2, 40.0)]).by_context() == []


def test_prefill_is_limited_by_the_slower_of_reading_and_computing() -> None:
    records = [
        MACHINE,
        prefill(1, 50.0, linear_ops=1e9),  # computing 2.5 ms, reading 25 ms
        prefill(100, 500.0, linear_ops=100e9),  # computing 250 ms
        prefill(100, 500.0, linear_ops=25e9, numerics="fp32"),
        prefill(100, 500.0, linear_ops=25e9, numerics="bf16"),  # such operations were not measured
    ]
    found = {(cost.label, cost.tokens): cost for cost in Roofline(records).prefills()}
    assert found["draftline int8", 1].floor_ms == pytest.approx(25.0)
    assert found["draftline int8", 1].speed == pytest.approx(20.0)
    assert found["draftline int8", 100].floor_ms == pytest.approx(250.0)
    assert found["draftline int8", 100].floor_speed == pytest.approx(400.0)
    assert found["draftline fp32", 100].floor_ms == pytest.approx(250.0)
    assert found["draftline bf16", 100].floor_ms == pytest.approx(25.0)


def test_without_a_bandwidth_there_is_no_floor() -> None:
    measured = Roofline([forward(1, 40.0), prefill(8, 10.0)])
    assert measured.by_rows()[0].over_floor is None
    assert measured.prefills()[0].floor_speed is None
    unknown = Roofline([MACHINE, prefill(8, 10.0, weight_bytes=None, linear_ops=None)])
    assert unknown.prefills()[0].floor_ms is None


def test_compared_with_a_peer() -> None:
    peer = {"system": "peer", "numerics": "q8_0", "weight_bytes": None}
    records = [
        prefill(64, 100.0, repeat=0),
        prefill(64, 200.0, repeat=1),
        prefill(128, 100.0),
        prefill(64, 50.0, repeat=1, linear_ops=None, **peer),
        memory(draft="none", private_bytes=700_000_000),
        memory(draft="auto", private_bytes=800_000_000),
        memory(private_bytes=400_000_000, mapped_bytes=500_000_000, **peer),
    ]
    found = {comparison.what: comparison for comparison in Roofline(records).compare()}
    assert set(found) == {"prompt of 64 tokens", "private memory"}
    assert (found["prompt of 64 tokens"].gain, found["prompt of 64 tokens"].items) == (0.25, 1)
    assert found["private memory"].gain == 0.5


def test_tables_of_what_there_is() -> None:
    assert tables([]) == ([], [])
    found, _ = tables([memory()])
    assert [table.title for table in found] == ["Numerics", "Memory"]
    assert found[1].rows[0] == ("draftline", "auto", "4096", "820", "–", "494", "100")


def test_parts_of_a_forward_and_the_rest() -> None:
    records = [
        MACHINE,
        *(part("whole", ms, repeat=n) for n, ms in enumerate((28.0, 30.0, 50.0))),
        part("qkv", 12.0, bytes=200_000_000, ops=1e9),  # reading 10 ms, computing 2.5 ms
        part("down", 9.0, bytes=20_000_000, ops=2e9),  # reading 1 ms, computing 5 ms
        part("attention", 3.0, bytes=20_000_000, ops=0.2e9),  # in float32: 2 ms
        part("whole", 90.0, rows=512, context=0),
    ]
    found = {(cost.rows, cost.name): cost for cost in breakdown.costs(records)}
    assert found[1, "whole"].ms == 30.0 and found[1, "whole"].floor_ms is None
    assert found[1, "qkv"].floor_ms == pytest.approx(10.0) and found[1, "qkv"].share == pytest.approx(0.4)
    assert found[1, "down"].floor_ms == pytest.approx(5.0)
    assert found[1, "attention"].floor_ms == pytest.approx(2.0)
    assert found[1, "rest"].ms == pytest.approx(6.0) and found[512, "rest"].ms == 90.0
    (table,) = breakdown.tables(records)
    assert [row[3] for row in table.rows] == ["whole", "qkv", "down", "attention", "rest", "whole", "rest"]
    assert breakdown.tables([MACHINE]) == []
