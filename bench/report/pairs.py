"""Draftline against another system, item by item: the noise of a shared machine and the difficulty of an item
are in both halves of a pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from bench.quality.intervals import CONFIDENCE, RESAMPLES, mean_interval
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, median, number, percent, points, times
from bench.report.systems import is_ours

K = TypeVar("K")
Better = Literal["lower", "higher"]
# Sums of equal values may differ by so much.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Comparison:
    """One measure of Draftline and of another system over the items that both have.

    Attributes:
        what: is compared; group: the set or kind of items, "" for all.
        ours, theirs: medians over the items; means where the measure is a share.
        gain: how much better Draftline is. A ratio: median over the items of how many times, worse if below
            1. A difference: mean over the items of the shares' difference, worse if below 0.
        low, high: 95 % bootstrap interval of ``gain``, None with fewer than two items.
    """

    what: str
    group: str
    other: str
    unit: str
    measure: Literal["ratio", "difference"]
    ours: float
    theirs: float
    gain: float
    low: float | None
    high: float | None
    items: int

    @property
    def behind(self) -> bool:
        """Draftline is worse than a peer."""
        return not is_ours(self.other) and self.gain < self._even - _ROUNDING

    @property
    def clear(self) -> bool:
        """The whole interval lies on one side."""
        if self.low is None or self.high is None:
            return False
        return self.high < self._even - _ROUNDING or self.low > self._even + _ROUNDING

    @property
    def _even(self) -> float:
        return 1.0 if self.measure == "ratio" else 0.0

    @property
    def factor(self) -> float:
        """How many times worse, to put ratios and differences in one order."""
        if self.measure == "ratio":
            return 1 / self.gain if self.gain else math.inf
        return self.theirs / self.ours if self.ours else math.inf


def ratios(
    what: str,
    group: str,
    other: str,
    unit: str,
    ours: Mapping[K, float],
    theirs: Mapping[K, float],
    better: Better = "lower",
    item_of: Callable[[K], Hashable] = lambda key: key,
) -> Comparison | None:
    """Median over the items of how many times better Draftline is.

    Pairs with a value that is not positive are left out.

    Args:
        ours, theirs: the values; those with the same key are a pair.
        item_of: the item that a pair repeats. An item with several pairs counts once, by their median, since
            repeats of one item say nothing about other items.

    Returns:
        None if there are no pairs.
    """
    pairs = {key: (mine, others) for key, mine, others in paired(ours, theirs) if mine > 0 and others > 0}
    items: dict[Hashable, list[tuple[float, float, float]]] = {}
    for key, (mine, others) in pairs.items():
        gain = others / mine if better == "lower" else mine / others
        items.setdefault(item_of(key), []).append((mine, others, gain))
    if not items:
        return None
    medians = [[_median(column) for column in zip(*values, strict=True)] for values in items.values()]
    mine, others, gain = (_median(column) for column in zip(*medians, strict=True))
    low, high = _interval_of_median([values[2] for values in medians])
    return Comparison(what, group, other, unit, "ratio", mine, others, gain, low, high, len(items))


def differences(
    what: str, group: str, other: str, ours: Mapping[K, float], theirs: Mapping[K, float]
) -> Comparison | None:
    """Mean of the pairs' differences of a share of which more is better. Most items have the same share, so a
    median would say nothing.

    Returns:
        None if there are no pairs.
    """
    pairs = [(mine, others) for _, mine, others in paired(ours, theirs)]
    if not pairs:
        return None
    mine, others = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
    gain = mean_interval([mine - others for mine, others in pairs])
    low, high = (gain.low, gain.high) if len(pairs) > 1 else (None, None)
    return Comparison(what, group, other, "", "difference", mine, others, gain.mean, low, high, len(pairs))


def paired(ours: Mapping[K, float], theirs: Mapping[K, float]) -> list[tuple[K, float, float]]:
    """The keys that both have, with both values."""
    return [(key, value, theirs[key]) for key, value in ours.items() if key in theirs]


def comparison_table(title: str, note: str, comparisons: Sequence[Comparison]) -> Table:
    """One row for each comparison."""
    return Table(
        title,
        note,
        ("compared", "on", "with", "Draftline", "the other", "gain ↑", "95 % interval", "items"),
        tuple(
            (item.what, item.group or "all", item.other, *both(item), *gain_of(item), str(item.items))
            for item in comparisons
        ),
        words=3,
    )


def gain_of(item: Comparison) -> tuple[str, str]:
    """A comparison's gain and its interval as words."""
    write = times if item.measure == "ratio" else points
    if item.low is None or item.high is None:
        return write(item.gain), UNKNOWN
    return write(item.gain), f"{write(item.low)} to {write(item.high)}"


def both(item: Comparison) -> tuple[str, str]:
    """Draftline's value and the other's as words."""
    if item.measure == "difference":
        return percent(item.ours), percent(item.theirs)
    return f"{number(item.ours)} {item.unit}", f"{number(item.theirs)} {item.unit}"


def _interval_of_median(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Percentile interval of the median's bootstrap distribution (Efron 1979), always with the same seed."""
    if len(values) < 2:
        return None, None
    sample = np.asarray(values, dtype=np.float64)
    chosen = np.random.default_rng(0).integers(0, len(sample), size=(RESAMPLES, len(sample)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.median(sample[chosen], axis=1), [tail, 1 - tail])
    return float(low), float(high)


def _median(values: Sequence[float]) -> float:
    found = median(values)
    assert found is not None
    return found
