"""Which systems a run compares, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

OURS = "draftline"


class HasSystem(Protocol):
    """A record that says who answered."""

    @property
    def system(self) -> str: ...


class HasNumerics(HasSystem, Protocol):
    """A record that also says in which numerics."""

    @property
    def numerics(self) -> str: ...


def is_ours(system: str) -> bool:
    """Draftline or a variant of it, not a peer."""
    return system == OURS or system.startswith(OURS + " ")


def in_order(records: Iterable[HasSystem]) -> list[str]:
    """The systems that have records: Draftline first, then as they appear."""
    names = dict.fromkeys(record.system for record in records)
    return sorted(names, key=lambda name: (name != OURS, not is_ours(name)))


def reference(systems: Iterable[str]) -> str | None:
    """The system that the others are compared with: the first of Draftline's, None without one."""
    return next((system for system in systems if is_ours(system)), None)


def labels(records: Iterable[HasNumerics]) -> dict[tuple[str, str], str]:
    """A name for each system and numerics: the system's own where it has only one."""
    pairs = list(dict.fromkeys((record.system, record.numerics) for record in records))
    pairs.sort(key=lambda pair: (pair[0] != OURS, not is_ours(pair[0])))
    several = {system for system, _ in pairs if sum(other == system for other, _ in pairs) > 1}
    return {pair: " ".join(pair) if pair[0] in several else pair[0] for pair in pairs}
