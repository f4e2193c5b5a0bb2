"""What a drafter does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Source = Literal["none", "suffix", "pointer", "recycling", "model", "shared"]


@dataclass(frozen=True)
class Proposal:
    """A chain of guessed tokens and what they are based on.

    Attributes:
        match: how many tokens before the cursor agree with the place that is copied from; 0 where there is
            nothing to copy and ``tokens`` is empty, or where that place is itself a guess. For the source
            "model" how many of its tokens are expected to be right, rounded down.
        source: the drafter; "none" without tokens.
    """

    tokens: tuple[int, ...]
    match: int
    source: Source


NOTHING = Proposal((), 0, "none")


class Drafter(Protocol):
    """Follows one sequence and guesses how it goes on."""

    def extend(self, tokens: list[int]) -> None:
        """Append tokens that are now part of the sequence."""

    def propose(self, limit: int) -> Proposal:
        """At most ``limit`` tokens to come."""

    def verified(self, fed: list[int], chosen: list[int]) -> None:
        """What one forward said: the token that the model puts behind each token of the block."""


class NoDrafter:
    """Never guesses: plain decoding."""

    def extend(self, tokens: list[int]) -> None:
        """Ignored."""

    def propose(self, limit: int) -> Proposal:
        """Nothing."""
        return NOTHING

    def verified(self, fed: list[int], chosen: list[int]) -> None:
        """Ignored."""
