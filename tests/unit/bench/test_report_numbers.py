"""Percentiles, rates and how numbers are written."""

from __future__ import annotations

import numpy as np
import pytest

from bench.report.layout import Table
from bench.report.numbers import (
    UNKNOWN,
    megabytes,
    number,
    percent,
    percentile,
    points,
    quotient,
    rate,
    share,
    spread,
    times,
)


@pytest.mark.parametrize(
    ("values", "level", "expected"),
    [
        ([7.0], 99, 7.0),
        ([2.0, 1.0], 50, 1.5),
        ([4.0, 1.0, 3.0, 2.0], 50, 2.5),
        ([4.0, 1.0, 3.0, 2.0], 95, 3.85),  # rank 2.85 between 3 and 4
        ([1.0, 2.0, 3.0], 0, 1.0),
        ([1.0, 2.0, 3.0], 100, 3.0),
    ],
)
def test_percentile(values: list[float], level: float, expected: float) -> None:
    assert percentile(values, level) == pytest.approx(expected)


def test_percentile_is_numpys_default() -> None:
    values = [3.0, 9.5, 1.25, 8.0, 2.0, 2.0, 40.0]
    for level in (1, 25, 50, 95, 99):
        assert percentile(values, level) == pytest.approx(np.percentile(values, level))


def test_nothing_known_is_none_and_no_division_by_zero() -> None:
    assert percentile([], 50) is None
    assert spread([None, None]).p99 is None
    assert quotient(3, 0) is None
    assert quotient(None, 2) is None
    assert quotient(3, None) is None
    assert share([]) is None
    assert rate([(None, 2), (1, None)], lambda pair: pair[0], lambda pair: pair[1]) is None


def test_rate_counts_only_records_that_know_both() -> None:
    pairs = [(6, 2), (None, 100), (1000, None), (4, 3)]
    assert rate(pairs, lambda pair: pair[0], lambda pair: pair[1]) == 2.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, UNKNOWN),
        (0, "0.00"),
        (0.004, "< 0.01"),
        (0.25, "0.25"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (1234.5, "1234"),
        (-2.5, "-2.50"),
    ],
)
def test_number(value: float | None, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, UNKNOWN),
        (0.0, "0 %"),
        (0.0001, "< 0.1 %"),
        (0.125, "12.5 %"),
        (0.9999, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_percent_is_whole_only_if_exact(value: float | None, expected: str) -> None:
    assert percent(value) == expected


def test_other_words() -> None:
    assert (points(-0.1234), points(0.02), points(-0.0001), points(None)) == (
        "-12.3 pp",
        "+2.0 pp",
        "0.0 pp",
        UNKNOWN,
    )
    assert (times(1.5), times(None)) == ("1.50x", UNKNOWN)
    assert (megabytes(820_000_000), megabytes(None)) == ("820", UNKNOWN)


def test_table_is_aligned_raw_and_safe() -> None:
    table = Table("T", "Note.", ("name", "ms"), (("a|b", "1.0"), ("two\nlines", "100")))
    assert table.markdown() == (
        "### T\n\nNote.\n\n"
        "| name      |  ms |\n"
        "| --------- | --: |\n"
        "| a\\|b      | 1.0 |\n"
        "| two lines | 100 |"
    )
