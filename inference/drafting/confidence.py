"""What a draft model's probabilities are worth."""

from __future__ import annotations

BINS = 10
SMOOTHING = 0.04


class Calibration:
    """Learns how often the target chooses the token that the draft model gives some probability.

    A small model's probability of its choice says how sure it is of the text, not how often a larger one
    agrees. After histogram binning (Zadrozny and Elkan, ICML 2001), with exponential means.
    """

    def __init__(self) -> None:
        # Until there is experience a probability is taken at its word.
        self._chance = [(i + 0.5) / BINS for i in range(BINS)]

    def chance(self, probability: float) -> float:
        """How likely a token of this probability, 0 .. 1, is right, given that those before it are."""
        return self._chance[_bin(probability)]

    def learn(self, probability: float, right: bool) -> None:
        """From a token that was verified behind right ones."""
        at = _bin(probability)
        self._chance[at] += SMOOTHING * (right - self._chance[at])


def _bin(probability: float) -> int:
    return min(int(probability * BINS), BINS - 1) if probability > 0 else 0
