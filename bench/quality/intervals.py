"""How far a figure may be off because only some tasks were asked: bootstrap percentile intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval, and the number of values it is of."""

    mean: float
    low: float
    high: float
    count: int


def mean_interval(values: Sequence[float], seed: int = 0) -> Interval:
    """The mean of ``values`` and the percentile interval of its bootstrap distribution (Efron 1979).

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("an interval needs at least one value")
    sample = np.asarray(values, dtype=np.float64)
    chosen = np.random.default_rng(seed).integers(0, len(sample), size=(RESAMPLES, len(sample)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(sample[chosen].mean(axis=1), [tail, 1 - tail])
    return Interval(float(sample.mean()), float(low), float(high), len(sample))


def difference_interval(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Interval:
    """The mean of ``first - second``, values of the same item at the same place.

    Items are drawn as pairs, so what makes an item easy or hard for both takes no part in the width.

    Raises:
        ValueError: no values, or not as many in both.
    """
    differences = [one - other for one, other in zip(first, second, strict=True)]
    return mean_interval(differences, seed)
