"""What a forward costs by its number of rows, learned while decoding."""

from __future__ import annotations

import math

from inference.drafting.base import DRAFT_LIMIT

MAX_ROWS = DRAFT_LIMIT + 1
KNOTS = (1, 2, 4, 8, 16, 32)  # between these the curve is straight; the last is MAX_ROWS

# Relative to one row, until this machine's own is known. Measured for the 0.5B in int8 with AVX512-VNNI and
# compiled steps: 13 ms for 1 row, 18 for 8, 28 for 16, 50 for 32.
FIRST_GUESS = (1.0, 1.06, 1.17, 1.39, 2.15, 3.85)

# Steps towards an observation, in the logarithm. Forwards of one row tell how fast the machine is just now,
# wide ones mostly what rows cost relative to that.
_SPEED_NARROW, _SPEED_WIDE = 0.1, 0.02
_SHAPE = 0.2
_CLIP = 0.7  # one stalled forward must not switch drafting off
# Where rows seem too dear to try, nothing would ever show that they no longer are.
_RECOVERY = 0.002
# Guessing itself takes time, also where rows are free.
_LEAST_FLOOR = 0.02


class CostCurve:
    """Milliseconds by rows: the machine's present speed times a piecewise linear shape.

    Attributes:
        relative: cost of a forward of 0 .. MAX_ROWS rows, that of one row being 1; never falls. To be read
            only.
        floor: the least chance with which a guess can be worth its row.
    """

    def __init__(self) -> None:
        self._ms = 0.0  # of one row
        self._shape = list(FIRST_GUESS)
        self.relative: list[float] = []
        self.floor = 0.0
        self._redraw()

    @property
    def plain_ms(self) -> float:
        """Of a forward of one row, 0 until a forward was seen."""
        return self._ms

    @property
    def row(self) -> float:
        """What one more row costs on average in a forward of a few, relative to one of one row."""
        return (self.relative[8] - 1.0) / 7

    def observe(self, rows: int, ms: float) -> None:
        """Learn from the time of one decode forward."""
        if not 0 < rows <= MAX_ROWS or ms <= 0.0:
            return
        if not self._ms:
            self._ms = ms / self.relative[rows]
            return
        error = math.log(ms / (self._ms * self.relative[rows]))
        error = max(-_CLIP, min(_CLIP, error))
        self._ms *= math.exp(error * (_SPEED_NARROW if rows == 1 else _SPEED_WIDE))
        if rows > 1:
            for knot, share in _shares(rows):
                if knot:  # the first one is the unit
                    self._shape[knot] *= math.exp(error * share * _SHAPE)
        for knot in range(1, len(KNOTS)):
            if KNOTS[knot] > 2 * rows:
                self._shape[knot] += _RECOVERY * (FIRST_GUESS[knot] - self._shape[knot])
        self._redraw()

    def _redraw(self) -> None:
        shape = self._shape
        # Written back: a knot below the one before it would have to climb before anything is seen of it.
        for knot in range(1, len(shape)):
            shape[knot] = max(shape[knot], shape[knot - 1])
        heights = shape
        relative = [0.0, 1.0]
        slopes = []
        for knot in range(1, len(KNOTS)):
            rows = KNOTS[knot] - KNOTS[knot - 1]
            slope = (heights[knot] - heights[knot - 1]) / rows
            slopes.append(slope)
            relative += [heights[knot - 1] + slope * row for row in range(1, rows + 1)]
        self.relative = relative
        # No stretch of a curve rises less per row than the flattest of its straight pieces.
        self.floor = max(min(slopes), _LEAST_FLOOR)


def _shares(rows: int) -> list[tuple[int, float]]:
    """The knots that decide a number of rows, by index, and how much."""
    right = next(knot for knot, at in enumerate(KNOTS) if at >= rows)
    if KNOTS[right] == rows:
        return [(right, 1.0)]
    share = (rows - KNOTS[right - 1]) / (KNOTS[right] - KNOTS[right - 1])
    return [(right - 1, 1.0 - share), (right, share)]
