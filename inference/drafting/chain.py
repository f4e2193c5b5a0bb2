"""A chain of a draft model's choices with what it would have chosen else."""

from __future__ import annotations

from collections.abc import Sequence

from inference.drafting.base import Source
from inference.drafting.tree import Tree

BREADTH = 3  # of the likeliest tokens at a place, the choice among them


class Chain:
    """Grows token by token.

    Attributes:
        chance: that all of it is right.

    Args:
        least: chance below which a node is not worth its row.
    """

    def __init__(self, least: float) -> None:
        self.tokens: list[int] = []
        self.chance = 1.0
        self._chances: list[float] = []
        self._least = least
        self._others: list[tuple[float, int, int]] = []

    def __len__(self) -> int:
        return len(self.tokens)

    def append(self, token: int, chance: float, others: Sequence[tuple[int, float]]) -> bool:
        """Append a token unless it is too unlikely, which is the end of the chain.

        Args:
            chance: that it is right, given that those before it are.
            others: alternatives to it, with their chances.
        """
        parent = len(self.tokens) - 1
        for other, likely in others:
            if self.chance * min(likely, 1.0 - chance) >= self._least:
                self._others.append((-self.chance * min(likely, 1.0 - chance), parent, other))
        if self.chance * chance < self._least:
            return False
        self.chance *= chance
        self.tokens.append(token)
        self._chances.append(self.chance)
        return True

    def tree(self, limit: int) -> Tree:
        """The chain, and behind all of it the likeliest alternatives; at most ``limit`` nodes."""
        others = sorted(self._others)[: max(0, limit - len(self.tokens))]
        sources: tuple[Source, ...] = ("model",)
        return Tree(
            (*self.tokens, *(token for _, _, token in others)),
            (*range(-1, len(self.tokens) - 1), *(parent for _, parent, _ in others)),
            (*self._chances, *(-chance for chance, _, _ in others)),
            sources * (len(self.tokens) + len(others)),
        )
