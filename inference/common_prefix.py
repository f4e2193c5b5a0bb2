"""How far two token sequences begin alike."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Number of leading tokens that are equal."""
    a, b = list(a), list(b)  # slices of one type are compared in C
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        # Halving costs no more than twice the length.
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
