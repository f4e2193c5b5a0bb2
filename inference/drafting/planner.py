"""How many tokens to draft: as long as the next one is likely to be worth its cost."""

from __future__ import annotations

import math

DRAFT_LIMIT = 15  # with the token before it a block of 16 rows
WIDE = 8  # rows from which on a forward counts as wide

# Cost of one more row relative to a forward of one row, until this machine's own is known. Measured
# for the 0.5B in int8 with AVX512-VNNI: 33 ms for 1 row, 51 ms for 16.
FIRST_GUESS = 0.04
SMOOTHING = 0.1


class Planner:
    """Learns how often drafts of a given match length are right, and what rows cost here.

    Decides about work only: the text never depends on it.
    """

    def __init__(self) -> None:
        # Chance that one drafted token is right, by match length; longer matches are surer.
        self._chance = {match: match / (match + 1.5) for match in range(1, 9)}
        self._narrow_ms = 0.0
        self._row_cost = FIRST_GUESS

    @property
    def row_cost(self) -> float:
        """Cost of one more row as a fraction of a forward of one row."""
        return self._row_cost

    def width(self, match: int) -> int:
        """Tokens to draft after a match of this length.

        Token k of a chain is accepted with chance p**k and then saves about one forward; it
        is worth drafting while that exceeds the cost of its row.
        """
        if match <= 0:
            return 0
        chance = self._chance[min(match, 8)]
        if chance <= self._row_cost:
            # Even the first token does not pay. One is drafted all the same once in a while, or
            # the estimate could never recover.
            return 1 if self._row_cost < 0.5 else 0
        return max(1, min(DRAFT_LIMIT, int(math.log(self._row_cost) / math.log(min(chance, 0.99)))))

    def accepted(self, match: int, drafted: int, accepted: int) -> None:
        """Learn from a verified draft: ``accepted`` right tokens, then a wrong one if fewer than drafted."""
        key = min(match, 8)
        trials = min(accepted + 1, drafted)
        for trial in range(trials):
            outcome = 1.0 if trial < accepted else 0.0
            self._chance[key] += SMOOTHING * (outcome - self._chance[key])

    def observe(self, rows: int, ms: float) -> None:
        """Learn from the time of one decode forward."""
        if rows <= 2:
            before = self._narrow_ms or ms
            self._narrow_ms = before + SMOOTHING * (ms - before)
        elif rows >= WIDE and self._narrow_ms:
            cost = max((ms - self._narrow_ms) / (rows - 1) / self._narrow_ms, 0.0)
            # One stalled forward must not switch drafting off.
            self._row_cost += SMOOTHING * (min(cost, 1.0) - self._row_cost)
