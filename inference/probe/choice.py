"""The int8 kernel of this machine: probed once, stored, and its values checked at every later start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.model.linear.int8 import Int8Kernel
from inference.probe import stored
from inference.probe.candidates import CANDIDATES, Candidate, GetLibrary
from inference.probe.identity import identity
from inference.probe.race import KernelReport, fastest, race
from inference.probe.values import fault


@dataclass(frozen=True)
class KernelChoice:
    """Attributes:
    reports: of all candidates; those of the probe that made the choice.
    date: when that was, UTC and ISO 8601; "" for just now.
    file: where it is stored, None if it could not be.
    """

    kernel: Int8Kernel
    reports: tuple[KernelReport, ...]
    date: str
    file: Path | None
    notes: tuple[str, ...]

    @property
    def fresh(self) -> bool:
        """It was made at this start."""
        return not self.date


def choose_int8_kernel(
    library: GetLibrary = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    clock: Callable[[], float] = time.perf_counter,
) -> KernelChoice:
    """The fastest kernel whose values are right on this machine.

    The first time for a machine this takes at most half a second, later some milliseconds.

    Args:
        library: gives the compiled functions to candidates that need them.
    """
    here = tuple(candidate.name for candidate in candidates if candidate.available(library))
    key = identity(here)
    notes: list[str] = []
    kept = stored.read(key)
    if kept is not None:
        chosen = next((c for c in candidates if c.name == kept.kernel and c.name in here), None)
        problem = "it is not here" if chosen is None else fault(chosen, library, clock)
        if chosen is not None and not problem:
            return KernelChoice(chosen.kernel, kept.reports, kept.date, stored.file_of(key), ())
        notes.append(f"The stored kernel {kept.kernel} failed its check ({problem}): probed again.")
    reports = race(candidates, library, clock)
    best = fastest(reports)
    # The last candidate needs nothing but float products: a machine where it fails has nothing else either.
    name = candidates[-1].name if best is None else best.name
    kernel = next(candidate.kernel for candidate in candidates if candidate.name == name)
    file = None
    running = [report for report in reports if report.exact and not report.gave_up]
    if len(running) > 1 and not all(report.row_ms for report in running):
        notes.append("The machine was too busy to time all kernels: they are probed again at the next start.")
    elif best is not None:
        if stored.write(key, name, reports):
            file = stored.file_of(key)
        else:
            notes.append("The choice of kernels cannot be stored; it is made at every start.")
    return KernelChoice(kernel, tuple(reports), "", file, tuple(notes))
