"""The drafter of ``auto``: a tree of remembered guesses, or a draft model's chain where that is faster."""

from __future__ import annotations

from collections.abc import Sequence

from inference.drafting.draft_model import DraftModelDrafter
from inference.drafting.planner import Planner
from inference.drafting.tree import EMPTY, Tree
from inference.drafting.tree_drafter import TreeDrafter


class AutoDrafter:
    """Decides for each forward who drafts, and how much.

    Args:
        trees: whether the decoder can verify trees; else the likeliest chain of a tree is taken.
        model: drafts with a smaller model, None if there is none. It has been given the prompt.
    """

    def __init__(
        self, guesses: TreeDrafter, planner: Planner, trees: bool, model: DraftModelDrafter | None
    ) -> None:
        self.match = 0
        self._guesses = guesses
        self._planner = planner
        self._trees = trees
        self._model = model
        self._proposed = self._guessed = EMPTY

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens that are now part of the answer."""
        self._guesses.extend(tokens)
        if self._model is not None:
            self._model.extend(list(tokens))

    def propose(self, limit: int, depth: int) -> Tree:
        """The part of all guesses that is worth its time; empty where that is nothing."""
        tree = self._guesses.propose(limit).shallow(depth)
        if not self._trees:
            tree = tree.spine()
        share = self._planner.trust.share(sum(tree.chances))
        self.match, self._guessed = self._guesses.match, tree
        tree = tree.head(self._planner.width(tree, share))
        if self._model is not None and limit > 0 and self._model.worth(self._planner.speed(tree, share)):
            drafted = self._model.propose(limit, depth, self._trees)
            if drafted:
                self.match = self._model.expected
                tree = drafted
        self._proposed = tree
        return tree

    def verified(
        self, fed: Sequence[int], chosen: Sequence[int], top: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Learn from the model's choices, also behind guesses that were wrong."""
        tree, guessed = self._proposed, self._guessed
        if guessed:
            # Of a draft in its place the forward tells the tokens up to the first wrong one.
            path = [chosen[row] for row in (0, *(node + 1 for node in tree.taken(chosen)))]
            decided = sum(guessed.chances[node] for node in guessed.decided(tree))
            self._planner.trust.learn(sum(guessed.chances), decided, guessed.reach(path))
        self._guesses.verified(tree, fed, chosen, top)
        if self._model is not None:
            self._model.verified(tree, chosen)
