"""What is typed, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

# The file as it is before, and what is typed at its end.
ABOVE = '''"""Prices of a shop."""

TAX = 0.19


def total(prices):
    result = 0
    for price in prices:
        result = result + price
    return result


'''

TYPED = """def mean(prices):
    if not prices:
        return 0
    return total(prices) / len(prices)


def with_tax(prices):
    return [price * (1 + TAX) for price in prices]


def highest(prices):
    best = prices[0]
    for price in prices[1:]:
        if price > best:
            best = price
    return best


print(mean([3, 4, 5]), highest(with_tax([1, 2])))
"""


@dataclass(frozen=True)
class Plan:
    """Characters to type at the end of ``above``, with the seconds to wait in front of each."""

    above: str
    typed: str
    waits: tuple[float, ...]


def make_plan(characters: int, per_second: float, seed: int = 0) -> Plan:
    """A plan with uneven pauses, as hands make them: from a half to one and a half of the mean."""
    if not 0 < characters <= len(TYPED):
        raise ValueError(f"between 1 and {len(TYPED)} characters can be typed, not {characters}")
    random_source = random.Random(seed)
    waits = tuple(random_source.uniform(0.5, 1.5) / per_second for _ in range(characters))
    return Plan(ABOVE, TYPED[:characters], waits)
