"""What drafters guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DRAFT_LIMIT = 31  # with the token before it a block of 32 rows
UNPLANNED_LIMIT = 15  # where nobody asks whether a draft pays

Source = Literal["none", "suffix", "pointer", "recycling", "model", "shared"]


@dataclass(frozen=True)
class Proposal:
    """A chain of guessed tokens and what they are based on.

    Attributes:
        match: how many tokens before the cursor agree with the place that is copied from; 0 where there is
            nothing to copy and ``tokens`` is empty, or where that place is itself a guess.
        source: the drafter; "none" without tokens.
    """

    tokens: tuple[int, ...]
    match: int
    source: Source


NOTHING = Proposal((), 0, "none")
