"""A made-up machine on which other programs take cores, and the policies to compare on it.

Time is simulated. A forward is serial work and some hundred parallel regions. While more threads run than
cores are free, a region may find one of its threads without a core; all others then wait for
the rest of a slice of the scheduler.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from inference.core_watch import CoreWatch, Counters
from inference.threads import ThreadGovernor

REGIONS = 170
SERIAL_MS = 3.0
PARALLEL_MS = 46.0  # on one thread
SLICE_MS = 8.0
CHANCE = 0.15  # of a region to lose a slice
Load = Callable[[float], float]  # second -> cores that others want


class Machine:
    """Two cores by default; ``threads`` is what the policy has set."""

    def __init__(self, load: Load, cores: int = 2, seed: int = 1) -> None:
        self.load, self.cores = load, cores
        self.now, self.own, self.others = 0.0, 0.0, 0.0
        self.threads = cores
        self._random = random.Random(seed)

    def set_threads(self, threads: int) -> None:
        self.threads = threads

    def counters(self) -> Counters:
        return Counters(self.now, self.own + self.others, self.own)

    def watch(self) -> CoreWatch:
        return CoreWatch(self.cores, self.counters)

    def forward(self, rows: int = 1, factor: float = 1.0) -> float:
        """Milliseconds of one forward; ``factor``: by how much a lower clock rate makes it longer."""
        start = self.now
        work = factor * (1 + 0.03 * (rows - 1))
        self._pass(SERIAL_MS * work, 1)
        for _ in range(REGIONS):
            short = self.threads + self.load(self.now) > self.cores
            if short and self.threads > 1 and self._random.random() < CHANCE:
                self._pass(SLICE_MS, self.threads - 1)
            # One thread on a core that it shares gets half of it.
            share = 0.5 if self.threads == 1 and self.load(self.now) >= self.cores else 1.0
            self._pass(PARALLEL_MS * work / REGIONS / self.threads / share, self.threads * share)
        return (self.now - start) * 1000

    def idle(self, seconds: float) -> None:
        self._pass(seconds * 1000, 0)

    def _pass(self, ms: float, used: float) -> None:
        self.others += min(self.load(self.now), self.cores) * ms / 1000
        self.now += ms / 1000
        self.own += used * ms / 1000


class ThreeStrikes:
    """An earlier policy: after three slow forwards in a row one thread, for a time that doubles."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._best: dict[int, float] = {}
        self._slow, self._pause_s = 0, 2.0
        self._resume_at: float | None = None

    def before_forward(self) -> None:
        if self._resume_at is not None and self._machine.now >= self._resume_at:
            self._resume_at, self._slow = None, 2
            self._machine.set_threads(self._machine.cores)

    def after_forward(self, rows: int, ms: float) -> None:
        if self._resume_at is not None:
            return
        best = self._best[rows] = min(self._best.get(rows, ms), ms)
        if ms <= 3 * best:
            self._slow, self._pause_s = 0, 2.0
            return
        self._slow += 1
        if self._slow >= 3:
            self._resume_at = self._machine.now + self._pause_s
            self._pause_s = min(2 * self._pause_s, 30.0)
            self._machine.set_threads(1)


class Fixed:
    """Always so many threads."""

    def __init__(self, machine: Machine, threads: int) -> None:
        machine.set_threads(threads)

    def before_forward(self) -> None:
        pass

    def after_forward(self, rows: int, ms: float) -> None:
        pass


def governor(machine: Machine, looks: bool = True) -> ThreadGovernor:
    """Today's policy; ``looks``: it may look at what others take."""

    def refuse() -> Counters:
        raise OSError("not here")

    return ThreadGovernor(
        machine.cores,
        True,
        machine.set_threads,
        lambda: machine.now,
        machine.watch() if looks else CoreWatch(machine.cores, refuse),
        lambda: machine.own,
    )


POLICIES: dict[str, Callable[[Machine], ThreadGovernor | ThreeStrikes | Fixed]] = {
    "all": lambda machine: Fixed(machine, machine.cores),
    "one": lambda machine: Fixed(machine, 1),
    "three strikes": ThreeStrikes,
    "governor": governor,
    "governor without looks": lambda machine: governor(machine, looks=False),
}


def total_ms(policy: str, load: Load, answers: int = 60, cores: int = 2) -> float:
    """Time of all forwards of a typist's answers: 12 steps of 1, 8 or 16 rows each, then a pause."""
    machine = Machine(load, cores)
    acting = POLICIES[policy](machine)
    total = 0.0
    for _ in range(answers):
        for step in range(12):
            rows = (1, 8, 1, 16)[step % 4]
            acting.before_forward()
            ms = machine.forward(rows)
            acting.after_forward(rows, ms)
            total += ms
            machine.idle(0.001)
        machine.idle(0.3)
    return total
