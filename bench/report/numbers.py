"""Percentiles, rates and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

UNKNOWN = "–"


@dataclass(frozen=True)
class Spread:
    """Percentiles of some values, None without values."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The value below which ``percent`` of the values lie, None without values.

    Linear interpolation between the two closest ranks, the rank of the smallest being 0 and of the largest
    100 (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, type 7; also numpy's default).
    """
    if not values:
        return None
    ranked = sorted(values)
    rank = (len(ranked) - 1) * percent / 100
    below = math.floor(rank)
    above = math.ceil(rank)
    return ranked[below] + (ranked[above] - ranked[below]) * (rank - below)


def median(values: Sequence[float]) -> float | None:
    """The 50th percentile."""
    return percentile(values, 50)


def spread(values: Iterable[float | None]) -> Spread:
    """Percentiles of the values that are known."""
    known = [value for value in values if value is not None]
    return Spread(len(known), percentile(known, 50), percentile(known, 95), percentile(known, 99))


def quotient(above: float | None, below: float | None) -> float | None:
    """``above / below``, None where one is unknown or ``below`` is 0."""
    if above is None or not below:
        return None
    return above / below


def share(flags: Iterable[bool]) -> float | None:
    """How many of the flags are set, 0 .. 1; None without flags."""
    known = list(flags)
    return quotient(sum(known), len(known))


def rate(
    records: Iterable[T], above: Callable[[T], float | None], below: Callable[[T], float | None]
) -> float | None:
    """Sum over sum, of the records that know both."""
    both = [(above(record), below(record)) for record in records]
    known = [(top, bottom) for top, bottom in both if top is not None and bottom is not None]
    return quotient(sum(top for top, _ in known), sum(bottom for _, bottom in known))


def number(value: float | None) -> str:
    """Three digits or all before the point: 0.25, 2.50, 25.0, 250, 2500."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    if 0 < size < 0.01:
        return "< 0.01" if value > 0 else "> -0.01"
    # Chosen after rounding: 9.996 is 10.0, not 10.00.
    digits = 0 if round(size, 1) >= 100 else 1 if round(size, 2) >= 10 else 2
    return f"{value:.{digits}f}"


def count(value: int | None) -> str:
    """A whole number."""
    return UNKNOWN if value is None else str(value)


def percent(value: float | None) -> str:
    """A share as percent; "0 %" and "100 %" only where that is exact."""
    if value is None:
        return UNKNOWN
    if value in (0, 1):
        return f"{value * 100:.0f} %"
    text = f"{value * 100:.1f}"
    return {"0.0": "< 0.1 %", "100.0": "> 99.9 %"}.get(text, f"{text} %")


def points(value: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    if value is None:
        return UNKNOWN
    text = f"{value * 100:+.1f}"
    return "0.0 pp" if text in ("+0.0", "-0.0") else f"{text} pp"


def times(value: float | None) -> str:
    """A ratio."""
    return UNKNOWN if value is None else f"{number(value)}x"


def megabytes(value: float | None) -> str:
    """Bytes in MB of a million."""
    return UNKNOWN if value is None else number(value / 1e6)
