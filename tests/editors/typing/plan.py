"""What is typed, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

# The file as it is before, without the line end behind it, and what is typed at its end.
ABOVE = '''"""Orders of a small shop."""

from dataclasses import dataclass, field


@dataclass
class Order:
    customer: str
    prices: list = field(default_factory=list)


def report(orders):
    """Lines of text about the orders, the dearest ones first."""'''

# All lines are indented alike, so that editors which indent by themselves come to the same text.
TYPED = """
    totals = {}
    for_all = [sum(order.prices) for order in orders]
    names = [order.customer for order in orders]
    for_all.sort(reverse=True)
    totals.update(zip(names, for_all))
    dearest = max(totals, key=totals.get)
    lines = ["customer: " + name for name in names]
    lines.append("dearest: " + dearest + " pays " + str(totals[dearest]))
    lines.append("sum: " + str(sum(for_all)))
    return lines"""
INDENT = "    "


@dataclass(frozen=True)
class Plan:
    """Keys to press at the end of ``above``.

    Attributes:
        keys: a character each; a line end is the Enter key.
        states: what is typed after each key.
        waits: seconds to wait behind each key.
        per_second: keys, on average.
    """

    above: str
    keys: tuple[str, ...]
    states: tuple[str, ...]
    waits: tuple[float, ...]
    per_second: float

    @property
    def typed(self) -> str:
        """All of it."""
        return self.states[-1]


def make_plan(keys: int, per_second: float, seed: int = 0, *, indents: bool = False) -> Plan:
    """A plan with uneven pauses, as hands make them: from a half to one and a half of the mean.

    Args:
        indents: the editor itself indents a new line as the one above, so that is not typed.
    """
    pieces: list[str] = []
    rest = TYPED
    while rest:
        piece = f"\n{INDENT}" if indents and rest[0] == "\n" else rest[0]
        assert rest.startswith(piece), "a line is not indented as the others"
        pieces.append(piece)
        rest = rest.removeprefix(piece)
    if not 0 < keys <= len(pieces):
        raise ValueError(f"between 1 and {len(pieces)} keys can be pressed, not {keys}")
    random_source = random.Random(seed)
    return Plan(
        ABOVE,
        tuple(piece[0] for piece in pieces[:keys]),
        tuple("".join(pieces[: count + 1]) for count in range(keys)),
        tuple(random_source.uniform(0.5, 1.5) / per_second for _ in range(keys)),
        per_second,
    )
