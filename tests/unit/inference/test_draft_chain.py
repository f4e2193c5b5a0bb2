"""Chains of a draft model with alternatives, and what is believed of trees."""

from __future__ import annotations

import pytest

from inference.drafting.auto import AutoDrafter
from inference.drafting.chain import Chain
from inference.drafting.planner import Planner
from inference.drafting.tree import EMPTY, Tree
from inference.drafting.trust import LEAST, Trust


def test_alternatives_stand_behind_the_chain_the_likeliest_first() -> None:
    chain = Chain(0.05)
    assert chain.append(1, 0.9, [(2, 0.06)])
    assert chain.append(3, 0.5, [(4, 0.3), (5, 0.1)])
    tree = chain.tree(10)
    assert tree.tokens == (1, 3, 4, 5, 2)
    assert tree.parents == (-1, 0, 0, 0, -1)
    assert tree.chances == pytest.approx((0.9, 0.45, 0.27, 0.09, 0.06))
    assert set(tree.sources) == {"model"}
    assert tree.spine().tokens == (1, 3)
    assert chain.chance == pytest.approx(0.45)


def test_what_is_not_worth_a_row_is_left_out() -> None:
    chain = Chain(0.1)
    assert chain.append(1, 0.95, [(2, 0.4)]), "with 0.95 only 0.05 are left for others"
    assert not chain.append(3, 0.05, [(4, 0.5)])
    assert chain.tree(10).tokens == (1, 4), "the end of the chain may have an alternative"
    assert Chain(0.1).tree(10) == EMPTY


def test_no_more_nodes_than_allowed() -> None:
    chain = Chain(0.01)
    for token in range(3):
        chain.append(token, 0.6, [(10 + token, 0.3)])
    assert chain.tree(4).tokens == (0, 1, 2, 10)
    assert chain.tree(3).tokens == (0, 1, 2)


def test_promises_that_are_broken_are_believed_less_and_kept_ones_again() -> None:
    trust = Trust()
    assert trust.share(1.5) == 1.0
    for _ in range(200):
        trust.learn(1.5, 1.5, 0)
    assert trust.share(1.5) == LEAST
    assert trust.share(6.0) == 1.0, "large promises are judged apart"
    for _ in range(200):
        trust.learn(1.5, 1.5, 2)
    assert trust.share(1.5) == 1.0, "never more than promised"


class _Guesses:
    """A tree drafter that promises much and is always wrong."""

    match = 3

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def propose(self, limit: int) -> Tree:
        return self.tree.head(limit)

    def verified(self, *args: object) -> None:
        pass


def test_trees_that_are_always_wrong_are_verified_no_more() -> None:
    tree = Tree((7, 8), (-1, 0), (0.6, 0.4), ("recycling", "recycling"))
    drafter = AutoDrafter(_Guesses(tree), Planner(), True, None)  # type: ignore[arg-type]
    widths = []
    for _ in range(100):
        proposed = drafter.propose(8, 8)
        widths.append(len(proposed))
        drafter.verified([1, *proposed.tokens], [99] * (1 + len(proposed)))
    assert widths[0] == 2
    assert widths[-1] == 0
    # What is not verified is learned from all the same.
    for _ in range(100):
        proposed = drafter.propose(8, 8)
        drafter.verified([1, *proposed.tokens], [7, 8, 9][: 1 + len(proposed)])
    assert len(drafter.propose(8, 8)) == 2


def test_what_a_narrow_forward_did_not_decide_is_no_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner()
    chain = Tree(
        tuple(range(10, 20)), tuple(range(-1, 9)), tuple(0.9**n for n in range(1, 11)), ("suffix",) * 10
    )
    drafter = AutoDrafter(_Guesses(chain), planner, True, None)  # type: ignore[arg-type]
    promised = sum(chain.chances)
    for _ in range(200):
        monkeypatch.setattr(planner, "width", lambda tree, share: 2)
        proposed = drafter.propose(10, 10)
        assert len(proposed) == 2
        drafter.verified([1, *proposed.tokens], [10, 11, 12])
    assert planner.trust.share(promised) == 1.0, "all that was seen of it was right"
    monkeypatch.setattr(planner, "width", lambda tree, share: 10)
    for _ in range(200):
        proposed = drafter.propose(10, 10)
        drafter.verified([1, *proposed.tokens], [10, 99, *range(len(proposed) - 1)])
    assert planner.trust.share(promised) < 0.3, "one of ten"


def test_what_a_forward_of_another_tree_decides() -> None:
    guessed = Tree((1, 2, 3, 4, 5), (-1, -1, 0, 1, 2), (0.5, 0.3, 0.3, 0.2, 0.1), ("suffix",) * 5)
    assert guessed.decided(EMPTY) == [0, 1]
    assert guessed.decided(guessed) == [0, 1, 2, 3, 4]
    assert guessed.decided(guessed.head(1)) == [0, 1, 2]
    # A draft model's: 2 behind the root is in both, 3 behind 1 is not.
    other = Tree((2, 4, 1), (-1, 0, -1), (0.5, 0.4, 0.1), ("model",) * 3)
    assert guessed.decided(other) == [0, 1, 2, 3]
