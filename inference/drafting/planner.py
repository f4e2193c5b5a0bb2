"""How much of a candidate tree to verify: what brings the most tokens per millisecond."""

from __future__ import annotations

from inference.drafting.chances import Chances
from inference.drafting.cost_curve import CostCurve
from inference.drafting.model_worth import ModelWorth
from inference.drafting.tree import Tree
from inference.drafting.trust import Trust

# What drafting must promise over decoding without a draft: chances are estimates, and guessing takes time.
MARGIN = 1.05


class Planner:
    """What has been learned about guesses and about this machine; shared by all requests of a model.

    Decides about work only: the text never depends on it.

    Attributes:
        model: the same about a draft model.
        trust: in the promises of trees.
    """

    def __init__(self) -> None:
        self.chances = Chances()
        self.costs = CostCurve()
        self.model = ModelWorth()
        self.trust = Trust()

    @property
    def floor(self) -> float:
        """The least chance of a node that may be worth its row; trees need no nodes below it."""
        return self.costs.floor

    def width(self, tree: Tree, share: float = 1.0) -> int:
        """How many of a tree's nodes to verify, from the first on; 0 where drafting does not pay.

        A forward brings one token and each accepted node. Nodes come best first, so the best tree of
        any size is a first part of the whole; the one with the most expected tokens per millisecond is
        taken, if that is more than without a draft by ``MARGIN``.
        """
        relative = self.costs.relative
        tokens, best, width = 1.0, MARGIN, 0
        for nodes, chance in enumerate(tree.chances, 1):
            tokens += share * chance
            rate = tokens / relative[nodes + 1]
            if rate > best:
                best, width = rate, nodes
        return width

    def speed(self, tree: Tree, share: float = 1.0) -> float:
        """Tokens per time if all of a tree is verified, as a multiple of plain decoding's."""
        return (1.0 + share * sum(tree.chances)) / self.costs.relative[len(tree) + 1]

    def observe(self, rows: int, ms: float) -> None:
        """Learn from the time of one decode forward."""
        self.costs.observe(rows, ms)
