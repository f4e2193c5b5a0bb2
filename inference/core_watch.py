"""How many of our cores other programs use, cheaply enough to ask before a forward pass."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

# The system counts in ticks of 10 ms (16 on Windows): over less than this a look is mostly rounding.
SHORTEST_S = 0.1


@dataclass(frozen=True)
class Counters:
    """Seconds since some start: ``wall``; ``busy`` of all cores that we may use, whoever used them, the
    hypervisor's other guests included; ``own`` of this process."""

    wall: float
    busy: float
    own: float


def read_counters() -> Counters:
    """The counters now. Some 0.1 ms.

    Raises:
        OSError, psutil.Error: the system does not tell.
    """
    cores = psutil.cpu_times(percpu=True)
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(cores))
    busy = 0.0
    for index in allowed:
        if index < len(cores):
            times = cores[index]._asdict()
            # Guests are counted in user and nice already.
            idle = ("idle", "iowait", "guest", "guest_nice")
            busy += sum(seconds for name, seconds in times.items() if name not in idle)
    return Counters(time.monotonic(), busy, time.process_time())


class CoreWatch:
    """Compares two looks at the counters.

    Args:
        cores: that this process may run on.
    """

    def __init__(self, cores: int, read: Callable[[], Counters] = read_counters) -> None:
        self._cores = cores
        self._read = read
        self._last: Counters | None = None

    def start(self) -> None:
        """Begin a new interval."""
        self._last = self._counters()

    def free(self) -> float | None:
        """Cores nobody else used, on average since the last look; None if that was too short ago or the
        system does not tell."""
        now, last = self._counters(), self._last
        if now is None or last is None:
            self._last = now
            return None
        wall = now.wall - last.wall
        if wall < SHORTEST_S:
            return None
        self._last = now
        others = (now.busy - last.busy - (now.own - last.own)) / wall
        return self._cores - min(max(others, 0.0), float(self._cores))

    def _counters(self) -> Counters | None:
        try:
            return self._read()
        except (OSError, psutil.Error, AttributeError, NotImplementedError):
            return None
