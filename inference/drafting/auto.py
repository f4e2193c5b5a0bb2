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
        self._proposed = EMPTY

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
        tree = tree.head(self._planner.width(tree))
        self.match = self._guesses.match
        if self._model is not None and limit > 0 and self._model.worth(self._planner.speed(tree)):
            drafted = self._model.propose(min(limit, depth))
            if drafted.tokens:
                self.match = drafted.match
                tree = Tree.of_chain(drafted, 0.0)
        self._proposed = tree
        return tree

    def verified(
        self, fed: Sequence[int], chosen: Sequence[int], top: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Learn from the model's choices, also behind guesses that were wrong."""
        tree = self._proposed
        self._guesses.verified(tree, fed, chosen, top)
        if self._model is None:
            return
        if tree.sources[:1] == ("model",):
            self._model.verified(list(fed), list(chosen))
        else:
            # Of a tree it hears of the path that was taken.
            rows = [0, *(node + 1 for node in tree.taken(chosen))]
            self._model.verified([fed[row] for row in rows], [chosen[row] for row in rows])
