"""What the decoding loop asks of a drafter, and the two simple ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from inference.drafting.suffix_index import SuffixIndex
from inference.drafting.tree import EMPTY, Tree


class Drafter(Protocol):
    """Follows one answer and guesses how it goes on.

    Attributes:
        match: how many tokens before the cursor the last guess rests on; for reports.
    """

    match: int

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens that are now part of the answer."""

    def propose(self, limit: int, depth: int) -> Tree:
        """What to verify: at most ``limit`` nodes, at most ``depth`` of them in a row."""

    def verified(
        self, fed: Sequence[int], chosen: Sequence[int], top: Sequence[Sequence[int]] | None = None
    ) -> None:
        """What the forward of the last proposal said; called before the tokens are appended.

        Args:
            fed: the last token of the sequence and the nodes of the tree.
            chosen: for each of them the token that the model puts behind it.
            top: for each of them the likeliest tokens behind it in descending order, if known.
        """


class NoDrafter:
    """Never guesses: plain decoding."""

    match = 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Ignored."""

    def propose(self, limit: int, depth: int) -> Tree:
        """Nothing."""
        return EMPTY

    def verified(
        self, fed: Sequence[int], chosen: Sequence[int], top: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Ignored."""


class CopyDrafter:
    """Prompt lookup, always as long as allowed: the drafter of ``ngram``."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self.match = 0
        self._index = SuffixIndex()
        self._index.extend(list(prompt))

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens that are now part of the answer."""
        self._index.extend(list(tokens))

    def propose(self, limit: int, depth: int) -> Tree:
        """The continuation of the longest match."""
        proposal = self._index.propose(min(limit, depth))
        self.match = proposal.match
        return Tree.of_chain(proposal, 1.0)

    def verified(
        self, fed: Sequence[int], chosen: Sequence[int], top: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Nothing to learn: the text says it all."""
