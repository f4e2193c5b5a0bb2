"""Candidate trees: several guesses for one position, verified by one forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.drafting.base import Proposal, Source


@dataclass(frozen=True)
class Tree:
    """Guessed tokens; those with the same parent are alternatives to each other.

    Nodes are numbered as in ``tokens``. Parents come before their children, and siblings have different
    tokens, so every first part of a tree is a tree. A tree of remembered guesses has its nodes best first; a
    draft model's has its chain first (`chain.py`).
    Node ``i`` is row ``i + 1`` of the forward that verifies the tree; row 0 is the last chosen token.

    Attributes:
        parents: node before each node, -1 behind the last chosen token.
        chances: how likely the model takes each node, as estimated: its chance and those of all nodes before
            it on its path, multiplied.
        sources: who guessed each node.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    chances: tuple[float, ...] = ()
    sources: tuple[Source, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    def children(self, node: int) -> list[int]:
        """Nodes behind ``node``, the likeliest first; -1 asks for the roots."""
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def chain(self, node: int) -> tuple[int, ...]:
        """Tokens from a root down to ``node``; none for -1."""
        path: list[int] = []
        while node >= 0:
            path.append(self.tokens[node])
            node = self.parents[node]
        return tuple(reversed(path))

    def head(self, count: int) -> Tree:
        """The first ``count`` nodes."""
        if count >= len(self.tokens):
            return self
        if count <= 0:
            return EMPTY
        return Tree(self.tokens[:count], self.parents[:count], self.chances[:count], self.sources[:count])

    def depths(self) -> list[int]:
        """How far each row of the forward stands behind the first one."""
        depths = [0]
        for parent in self.parents:
            depths.append(depths[parent + 1] + 1)
        return depths

    def shallow(self, depth: int) -> Tree:
        """The nodes with fewer than ``depth`` nodes before them on their path."""
        if len(self.tokens) <= depth:
            return self
        depths = self.depths()
        return self._only([node for node in range(len(self.tokens)) if depths[node + 1] <= depth])

    def spine(self) -> Tree:
        """The chain of the likeliest nodes."""
        path: list[int] = []
        for node, parent in enumerate(self.parents):
            if parent == (path[-1] if path else -1):
                path.append(node)
        return self._only(path)

    def _only(self, nodes: list[int]) -> Tree:
        """Some nodes, in order, with all their ancestors."""
        if len(nodes) == len(self.tokens):
            return self
        place = {node: at for at, node in enumerate(nodes)}
        place[-1] = -1
        return Tree(
            tuple(self.tokens[node] for node in nodes),
            tuple(place[self.parents[node]] for node in nodes),
            tuple(self.chances[node] for node in nodes),
            tuple(self.sources[node] for node in nodes),
        )

    @staticmethod
    def of_chain(proposal: Proposal, chance: float) -> Tree:
        """One node behind the other, all with the same chance."""
        size = len(proposal.tokens)
        return Tree(proposal.tokens, tuple(range(-1, size - 1)), (chance,) * size, (proposal.source,) * size)

    def reach(self, tokens: Sequence[int]) -> int:
        """How many of these tokens, from the first on, are a path from a root downwards."""
        node, right = -1, 0
        for child, parent in enumerate(self.parents):
            if right < len(tokens) and parent == node and self.tokens[child] == tokens[right]:
                node, right = child, right + 1
        return right

    def decided(self, verified: Tree) -> list[int]:
        """Nodes of which a forward of another tree tells whether the model takes them, whatever it says.

        Those are the roots and what stands behind verified nodes: further down a guess may be right, and
        nobody learns of it.
        """
        places = zip(verified.parents, verified.tokens, strict=True)
        there = {place: node for node, place in enumerate(places)}
        same, found = {-1: -1}, []
        for node, (parent, token) in enumerate(zip(self.parents, self.tokens, strict=True)):
            if parent in same:
                found.append(node)
                if (at := there.get((same[parent], token))) is not None:
                    same[node] = at
        return found

    def taken(self, chosen: Sequence[int]) -> list[int]:
        """Nodes that the model takes, from a root downwards.

        Args:
            chosen: for each row of the forward, the token that the model puts behind it;
                ``len(self) + 1`` of them.
        """
        path: list[int] = []
        node = -1
        for child, parent in enumerate(self.parents):
            # Children come after their parent, so one pass finds the whole path.
            if parent == node and self.tokens[child] == chosen[node + 1]:
                path.append(child)
                node = child
        return path


EMPTY = Tree()
