"""What a drafter does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Proposal:
    """A chain of guessed tokens and how long the context was that they are based on.

    ``match`` is 0 where there is nothing to copy; ``tokens`` is then empty.
    """

    tokens: tuple[int, ...]
    match: int


class Drafter(Protocol):
    """Follows one sequence and guesses how it goes on."""

    def extend(self, tokens: list[int]) -> None:
        """Append tokens that are now part of the sequence."""

    def propose(self, limit: int) -> Proposal:
        """At most ``limit`` tokens to come."""


class NoDrafter:
    """Never guesses: plain decoding."""

    def extend(self, tokens: list[int]) -> None:
        """Ignored."""

    def propose(self, limit: int) -> Proposal:
        """Nothing."""
        return Proposal((), 0)
