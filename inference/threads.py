"""Fewer threads while another process keeps a core busy.

Threads of one parallel region wait for each other. When one of them loses its core, the others wait a
whole time slice of the scheduler, some hundred times per forward pass: two threads on two cores
beside one busy process are several times slower than one thread. Bits do not depend on the number
of threads where this is used (integer sums, and element-wise steps cut as in `model.elementwise`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

SLOW = 3.0  # times the best forward of its size seen so far
PATIENCE = 3  # slow forwards in a row before giving way
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 30.0


class ThreadGovernor:
    """Watches forward times and switches between all threads and one.

    Args:
        threads: what to use while the cores are free.
        enabled: False where results may depend on the number of threads.
    """

    def __init__(
        self,
        threads: int,
        enabled: bool,
        set_threads: Callable[[int], None] = torch.set_num_threads,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.threads = threads
        self._enabled = enabled and threads > 1
        self._set_threads = set_threads
        self._clock = clock
        self._best: dict[int, float] = {}
        self._slow = 0
        self._pause_s = FIRST_PAUSE_S
        self._resume_at: float | None = None

    @property
    def reduced(self) -> bool:
        """Whether one thread runs at present."""
        return self._resume_at is not None

    def before_forward(self) -> None:
        """Go back to all threads when the pause is over."""
        if self._resume_at is not None and self._clock() >= self._resume_at:
            self._resume_at = None
            self._slow = PATIENCE - 1  # one slow forward is enough to give way again
            self._set_threads(self.threads)

    def after_forward(self, rows: int, ms: float) -> None:
        """Learn from the time of a forward pass of so many rows."""
        if not self._enabled or self.reduced:
            return
        size = rows.bit_length()
        best = self._best[size] = min(self._best.get(size, ms), ms)
        if ms <= SLOW * best:
            self._slow = 0
            self._pause_s = FIRST_PAUSE_S
            return
        self._slow += 1
        if self._slow >= PATIENCE:
            self._resume_at = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            self._set_threads(1)
