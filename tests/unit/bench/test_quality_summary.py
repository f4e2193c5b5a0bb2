"""Intervals against known values, and figures over the right answers."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from bench.quality.intervals import difference_interval, mean_interval
from bench.quality.summary import Way, paired, summarise
from bench.records import Answer

ANSWER = Answer(
    system="draftline",
    set="edit",
    item="0",
    variant="chat",
    numerics="int8",
    text="x",
    exact=True,
    similarity=1.0,
    passed=True,
    failure="",
    valid=True,
    tokens=1,
    ms=10.0,
    finish_reason="stop-token",
)


def test_equal_values_leave_no_doubt() -> None:
    interval = mean_interval([0.25] * 9)
    assert (interval.mean, interval.low, interval.high, interval.count) == (0.25, 0.25, 0.25, 9)


def test_a_share_has_the_interval_of_the_normal_approximation() -> None:
    interval = mean_interval([1.0] * 120 + [0.0] * 280)
    half = 1.96 * math.sqrt(0.3 * 0.7 / 400)
    assert interval.mean == pytest.approx(0.3)
    assert interval.low == pytest.approx(0.3 - half, abs=0.008)
    assert interval.high == pytest.approx(0.3 + half, abs=0.008)


def test_two_values_give_the_whole_range() -> None:
    # A quarter of the resamples draws 0 twice, a quarter 1 twice.
    interval = mean_interval([0.0, 1.0])
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_intervals_repeat_for_the_same_seed() -> None:
    draw = random.Random(1)
    values = [draw.random() for _ in range(30)]
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


def test_pairs_are_sharper_than_two_intervals() -> None:
    draw = random.Random(0)
    easy = [draw.random() for _ in range(100)]
    better = [value + 0.05 for value in easy]
    interval = difference_interval(better, easy)
    assert interval.mean == pytest.approx(0.05)
    assert interval.low > 0.049
    alone = mean_interval(easy)
    assert alone.high - alone.low > 10 * (interval.high - interval.low)


def test_no_values_and_unequal_ones_are_refused() -> None:
    with pytest.raises(ValueError):
        mean_interval([])
    with pytest.raises(ValueError):
        difference_interval([1.0], [])


def _answers(passed: list[bool | None], **more: object) -> list[Answer]:
    return [
        replace(ANSWER, item=str(item), passed=value, exact=bool(value), **more)  # type: ignore[arg-type]
        for item, value in enumerate(passed)
    ]


def test_rows_are_of_one_way_each() -> None:
    answers = [
        *_answers([True, False, True, True]),
        *_answers([False, False], numerics="fp32", similarity=0.5, valid=False, ms=30.0),
        *_answers([None], system="peer"),
    ]
    first, second, third = summarise(answers)
    assert first.way == Way("draftline", "edit", "chat", "int8")
    assert first.n == 4 and first.exact.mean == 0.75
    assert first.passed is not None and first.passed.mean == 0.75
    assert second.way.numerics == "fp32"
    assert (second.similarity.mean, second.valid.mean, second.ms) == (0.5, 0.0, 30.0)
    assert third.way.system == "peer" and third.passed is None


def test_the_last_answer_of_an_item_counts() -> None:
    (row,) = summarise([replace(ANSWER, exact=False, ms=5.0), ANSWER])
    assert (row.n, row.exact.mean, row.ms) == (1, 1.0, 10.0)


def test_nothing_makes_no_rows() -> None:
    assert summarise([]) == []


def test_pairs_are_the_items_that_both_answered() -> None:
    int8, fp32 = Way("draftline", "edit", "chat", "int8"), Way("draftline", "edit", "chat", "fp32")
    answers = [
        *_answers([True, True, False, None, True]),
        *_answers([True, False, False, True], numerics="fp32"),
    ]
    interval = paired(answers, "passed", int8, fp32)
    assert interval is not None
    assert interval.count == 3
    assert interval.mean == pytest.approx(1 / 3)
    exact = paired(answers, "exact", fp32, int8)
    assert exact is not None and (exact.count, exact.mean) == (4, 0.0)
    assert paired(answers, "passed", int8, int8._replace(system="nobody")) is None
