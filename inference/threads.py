"""Fewer threads while other programs keep cores busy.

Threads of one parallel region wait for each other. When one of them loses its core, the others wait a
whole time slice of the scheduler, some hundred times per forward pass: two threads on two cores
beside one busy process are several times slower than one thread. Bits do not depend on the number
of threads where this is used (integer sums, and element-wise steps cut as in `model.elementwise`).

A step down halves the threads, so it at most doubles the time of an undisturbed forward: it pays as soon as
forwards take more than twice their best. A step up is tried when other programs leave enough cores, or
after a pause that doubles with every try that fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from inference.core_watch import CoreWatch
from inference.probe.identity import available_cores

# A forward may take this many times the best of its kind before fewer threads are surely no slower ...
SLOW = 2.0
# ... or, once it is known what fewer threads take, this many times that, but NORMAL times the best at least.
NOT_BETTER = 1.1
NORMAL = 1.4
# Excess over the limit, halved with each forward, at which to give way: at once when a forward takes one and
# a half times the limit, with the second one for a third more than it.
EXCESS = 0.45
# The best time grows by this factor with each forward: a longer context is no disturbance.
FORGET = 1.003

LOOK_S = 0.25  # between two looks at the cores while threads are fewer
FIRST_PAUSE_S = 0.5  # before a try where looks are impossible, and after one that failed
LONGEST_PAUSE_S = 30.0
CALM = 20  # good forwards until an earlier failure is forgotten
# What other programs may take of a thread's core all the same.
SLACK = 0.4
# Share of the threads' time that the process was given, below which some were waiting for a core. Asked only
# until it is known what fewer threads take: a machine that is busy from the start has no better times.
STARVED = 0.6
STARVED_MS = 300.0  # of forwards to judge by; some clocks of CPU time tick in 16 ms


class ThreadGovernor:
    """Watches forward times and chooses among all threads, half of them, ... and one.

    Args:
        threads: what to use while the cores are free.
        enabled: False where results may depend on the number of threads.
        watch: tells how many cores are free; None looks at this machine.
        cpu_clock: CPU seconds of this process, all threads.
    """

    def __init__(
        self,
        threads: int,
        enabled: bool,
        set_threads: Callable[[int], None] = torch.set_num_threads,
        clock: Callable[[], float] = time.monotonic,
        watch: CoreWatch | None = None,
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self.threads = threads
        self._enabled = enabled and threads > 1
        self._set_threads = set_threads
        self._clock = clock
        self._watch = watch or CoreWatch(available_cores())
        self._cpu_clock = cpu_clock
        self._steps = _steps(threads)
        self._step = 0
        self._best: dict[tuple[int, int], float] = {}  # by threads and size, milliseconds
        self._recent: dict[tuple[int, int], float] = {}
        self._excess = 0.0
        self._used_ms, self._taken_ms = 0.0, 0.0  # CPU time and time of the forwards since the last judgement
        self._known: set[int] = set()  # numbers of threads that were ever used
        self._trying = False
        self._calm = 0
        self._pause_s = FIRST_PAUSE_S
        self._look_at = 0.0
        self._try_at = 0.0
        self._cpu_before = 0.0

    @property
    def current(self) -> int:
        """Threads in use at present."""
        return self._steps[self._step]

    @property
    def reduced(self) -> bool:
        """Whether fewer than all threads run at present."""
        return self._step > 0

    def before_forward(self) -> None:
        """Take a step up if it is time for one."""
        if not self._enabled:
            return
        if self.reduced and self._may_step_up():
            self._go(self._step - 1)
            self._trying = True
        self._cpu_before = self._cpu_clock()

    def after_forward(self, rows: int, ms: float) -> None:
        """Learn from the time of a forward pass of so many rows; take a step down if it was slow."""
        if not self._enabled:
            return
        self._used_ms += (self._cpu_clock() - self._cpu_before) * 1000
        self._taken_ms += ms
        kind = (self.current, _size(rows))
        best = self._best[kind] = min(self._best.get(kind, ms) * FORGET, ms)
        recent = self._recent.get(kind, ms)
        self._recent[kind] = recent + 0.3 * (ms - recent)
        self._known.add(self.current)
        if self.current == 1:
            return
        below = self._steps[self._step + 1]
        fewer = self._recent.get((below, kind[1]))
        if self._trying:
            self._trying = False
            if fewer is not None:
                # Measured against what it would replace, not against better times.
                if ms >= fewer:
                    self._give_way()
                else:
                    self._best[kind] = max(best, ms / SLOW)
                return
        limit = SLOW * best
        if fewer is not None:
            limit = max(min(limit, NOT_BETTER * fewer), NORMAL * best)
        self._excess = max(0.0, 0.5 * self._excess + ms / limit - 1.0)
        if self._excess > EXCESS or (self._starved() and below not in self._known):
            self._give_way()
            return
        self._calm += 1
        if self._calm >= CALM:
            self._pause_s = FIRST_PAUSE_S

    def _may_step_up(self) -> bool:
        now = self._clock()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        free = self._watch.free()
        if now < self._try_at:
            return False
        # Whatever the look says: what others do may not disturb, and only a try shows it.
        overdue = now >= self._try_at + LONGEST_PAUSE_S
        return free is None or overdue or free >= self._steps[self._step - 1] - SLACK

    def _give_way(self) -> None:
        now = self._clock()
        self._try_at = now + self._pause_s
        self._look_at = now + LOOK_S
        if self._calm < CALM:  # the last step up was a mistake
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._watch.start()
        self._go(self._step + 1)

    def _go(self, step: int) -> None:
        self._step = step
        self._excess, self._calm = 0.0, 0
        self._used_ms, self._taken_ms = 0.0, 0.0
        self._set_threads(self.current)

    def _starved(self) -> bool:
        if self._taken_ms < STARVED_MS:
            return False
        share = self._used_ms / (self._taken_ms * self.current)
        self._used_ms, self._taken_ms = 0.0, 0.0
        return share < STARVED


def _steps(threads: int) -> list[int]:
    steps = [threads]
    while steps[-1] > 1:
        steps.append((steps[-1] + 1) // 2)
    return steps


def _size(rows: int) -> int:
    """Rows rounded down to three binary digits: within one size the times differ by a quarter at most."""
    shift = max(rows.bit_length() - 3, 0)
    return rows >> shift << shift
