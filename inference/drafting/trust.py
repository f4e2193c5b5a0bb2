"""How much of what a tree promises comes true."""

from __future__ import annotations

SMOOTHING = 0.05
LEAST = 0.05
# Promised tokens beside the one that a forward always brings; trees between two of these are judged alike.
_BOUNDS = (0.5, 1.0, 2.0, 4.0)


class Trust:
    """Learns what trees bring, measured by the sum of their chances.

    The chance of a guess is a mean over the texts that were written lately. In a text of another kind, the
    first one that copies nothing after an hour of edits, all of them are wrong in the same direction, and
    their sum is more wrong than each.
    """

    def __init__(self) -> None:
        self._promised = [1.0] * (len(_BOUNDS) + 1)
        self._kept = [1.0] * (len(_BOUNDS) + 1)

    def share(self, promised: float) -> float:
        """How much to believe of a tree whose chances have the sum ``promised``, 0 .. 1."""
        at = _bucket(promised)
        return max(LEAST, min(self._kept[at] / self._promised[at], 1.0))

    def learn(self, promised: float, decided: float, right: int) -> None:
        """A tree with the sum of chances ``promised`` had ``right`` nodes that the model took.

        Args:
            decided: the sum over those nodes of which the forward could tell; ``right`` are among them.
        """
        at = _bucket(promised)
        self._promised[at] += SMOOTHING * (decided - self._promised[at])
        self._kept[at] += SMOOTHING * (right - self._kept[at])


def _bucket(promised: float) -> int:
    return sum(promised >= bound for bound in _BOUNDS)
