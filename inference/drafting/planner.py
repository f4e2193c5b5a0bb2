"""How many tokens to draft: as long as the next one is likely to be worth its cost."""

from __future__ import annotations

import math

from inference.drafting.base import Proposal, Source
from inference.drafting.model_worth import ModelWorth

DRAFT_LIMIT = 31  # with the token before it a block of 32 rows
UNPLANNED_LIMIT = 15  # where nobody asks whether a draft pays
WIDE = 8  # rows from which on a forward counts as wide

# Cost of one more row relative to a forward of one row, until this machine's own is known. Measured
# for the 0.5B in int8 with AVX512-VNNI and compiled steps: 26 ms for 1 row, 37 ms for 16.
FIRST_GUESS = 0.03
SMOOTHING = 0.1
RECOVERY = 0.002

# Longer matches are surer; these are told apart.
_BUCKETS = (0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 40)
# Until there is experience. A suffix index's match and a pointer's run mean much the same.
_RECYCLED = 0.3


class Planner:
    """Learns how often drafts of each kind are right, and what rows cost here.

    Decides about work only: the text never depends on it.

    Attributes:
        model: the same about a draft model.
    """

    def __init__(self) -> None:
        # Chance that one drafted token is right, by drafter and match length.
        self._chance: dict[tuple[Source, int], float] = {}
        self._narrow_ms = 0.0
        self._row_cost = FIRST_GUESS
        self.model = ModelWorth()

    @property
    def plain_ms(self) -> float:
        """Of a forward of one row, 0 until one was seen."""
        return self._narrow_ms

    @property
    def row_cost(self) -> float:
        """Cost of one more row as a fraction of a forward of one row."""
        return self._row_cost

    def chance(self, proposal: Proposal) -> float:
        """How likely each token of a proposal is right, given that those before it are."""
        if not proposal.tokens:
            return 0.0
        known = self._chance.get(_kind(proposal.source, proposal.match))
        if known is not None:
            return known
        if proposal.source == "recycling":
            return _RECYCLED
        if proposal.source == "model":
            expected = proposal.match + 0.5
            return expected / (expected + 1)  # as if drafts never ended
        match = min(proposal.match, 8) + 0.5 if proposal.source == "pointer" else min(proposal.match, 8)
        return match / (match + 1.5)

    def width(self, proposal: Proposal) -> int:
        """How many of a proposal's tokens to verify.

        Token k of a chain is accepted with chance p**k and then saves about one forward; it
        is worth drafting while that exceeds the cost of its row.
        """
        if not proposal.tokens:
            return 0
        chance = self.chance(proposal)
        if chance <= self._row_cost:
            # Even the first token does not pay. One is drafted all the same once in a while, or
            # the estimate could never recover.
            return 1 if self._row_cost < 0.5 else 0
        return max(1, min(DRAFT_LIMIT, int(math.log(self._row_cost) / math.log(min(chance, 0.995)))))

    def speed(self, proposal: Proposal) -> float:
        """Tokens per time if a proposal is verified, as a multiple of plain decoding's."""
        width, chance = min(self.width(proposal), len(proposal.tokens)), self.chance(proposal)
        expected = sum(chance**k for k in range(1, width + 1))
        return (1 + expected) / (1 + self._row_cost * width)

    def accepted(self, proposal: Proposal, drafted: int, accepted: int) -> None:
        """Learn from a verified draft: ``accepted`` right tokens, then a wrong one if fewer than drafted."""
        kind = _kind(proposal.source, proposal.match)
        chance = self.chance(proposal)
        trials = min(accepted + 1, drafted)
        for trial in range(trials):
            outcome = 1.0 if trial < accepted else 0.0
            chance += SMOOTHING * (outcome - chance)
        self._chance[kind] = chance

    def observe(self, rows: int, ms: float) -> None:
        """Learn from the time of one decode forward."""
        if rows <= 2:
            before = self._narrow_ms or ms
            self._narrow_ms = before + SMOOTHING * (ms - before)
            # Where rows seem too dear to try, nothing would ever show that they no longer are.
            self._row_cost += RECOVERY * (FIRST_GUESS - self._row_cost)
        elif rows >= WIDE and self._narrow_ms:
            cost = max((ms - self._narrow_ms) / (rows - 1) / self._narrow_ms, 0.0)
            # One stalled forward must not switch drafting off.
            self._row_cost += SMOOTHING * (min(cost, 1.0) - self._row_cost)


def _kind(source: Source, match: int) -> tuple[Source, int]:
    return source, max(bucket for bucket in _BUCKETS if bucket <= match)
