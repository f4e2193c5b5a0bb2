"""Trees are tries, best first; the planner takes the part of them that pays, and nothing where none does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.drafting.base import DRAFT_LIMIT
from inference.drafting.chances import MEMORY, SUFFIX, Chances, kind
from inference.drafting.cost_curve import FIRST_GUESS, KNOTS, MAX_ROWS, CostCurve
from inference.drafting.memory import DraftMemory
from inference.drafting.planner import MARGIN, Planner
from inference.drafting.tree import EMPTY, Tree
from inference.drafting.tree_drafter import TreeDrafter

_PROBABILITY = st.floats(0.01, 1.0)
_CHAINS = st.lists(
    st.tuples(st.lists(st.integers(0, 3), max_size=6), _PROBABILITY), max_size=6
)  # few tokens, so that chains share their beginnings


def check(tree: Tree) -> None:
    """What every tree promises."""
    assert len(tree.tokens) == len(tree.parents) == len(tree.chances) == len(tree.sources) == len(tree)
    assert len(set(zip(tree.parents, tree.tokens, strict=True))) == len(tree), "siblings differ"
    for node, parent in enumerate(tree.parents):
        assert -1 <= parent < node, "parents come first"
        assert 0.0 < tree.chances[node] <= (1.0 if parent < 0 else tree.chances[parent])
    assert all(a >= b for a, b in pairwise(tree.chances)), "best first"


def _merged(chains: list[tuple[list[int], float]], limit: int = DRAFT_LIMIT) -> Tree:
    """One tree of several chains, each with the chance of one of its tokens."""
    parents: list[int] = []
    chances: list[float] = []
    tokens: list[int] = []
    known: dict[tuple[int, int], int] = {}
    for chain, chance in chains:
        node = -1
        for token in chain:
            parent, node = node, known.setdefault((node, token), len(tokens))
            if node == len(tokens):
                tokens.append(token)
                parents.append(parent)
                chances.append(chance)
            chances[node] = max(chances[node], chance)
    for node, parent in enumerate(parents):
        chances[node] *= chances[parent] if parent >= 0 else 1.0
    order = sorted(range(len(tokens)), key=lambda node: (-chances[node], node))[:limit]
    place = {node: at for at, node in enumerate(order)}
    return Tree(
        tuple(tokens[node] for node in order),
        tuple(place.get(parents[node], -1) for node in order),
        tuple(chances[node] for node in order),
        ("suffix",) * len(order),
    )


@given(_CHAINS, st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_the_taken_path_is_the_longest_agreement(
    chains: list[tuple[list[int], float]], choices: list[int]
) -> None:
    tree = _merged(chains)
    check(tree)
    chosen = choices[: len(tree) + 1]
    path = tree.taken(chosen)
    for before, node in zip((-1, *path), path, strict=False):
        assert tree.parents[node] == before and tree.tokens[node] == chosen[before + 1]
    end = path[-1] if path else -1
    assert chosen[end + 1] not in {tree.tokens[child] for child in tree.children(end)}
    assert tree.chain(end) == tuple(tree.tokens[node] for node in path)


def _planner(relative: list[float]) -> Planner:
    planner = Planner()
    planner.costs.relative = relative
    return planner


@given(_CHAINS, st.lists(st.floats(0.0, 1.5), min_size=MAX_ROWS, max_size=MAX_ROWS))
def test_no_subtree_brings_more_per_millisecond(
    chains: list[tuple[list[int], float]], steps: list[float]
) -> None:
    tree = _merged(chains, 8)
    relative = [0.0, 1.0]
    for step in steps[1:]:
        relative.append(relative[-1] + step)

    def rate(nodes: tuple[int, ...]) -> float:
        return (1.0 + sum(tree.chances[node] for node in nodes)) / relative[len(nodes) + 1]

    rates = []
    for mask in range(1 << len(tree)):
        nodes = tuple(node for node in range(len(tree)) if mask >> node & 1)
        if all(tree.parents[node] < 0 or tree.parents[node] in nodes for node in nodes):
            rates.append(rate(nodes))
    width = _planner(relative).width(tree)
    if max(rates) <= MARGIN:
        assert width == 0
    else:
        assert rate(tuple(range(width))) == pytest.approx(max(rates))


def test_silent_where_nothing_pays() -> None:
    planner = Planner()
    assert planner.width(EMPTY) == 0
    unlikely = Tree((1, 2), (-1, -1), (0.04, 0.03), ("shared", "shared"))
    likely = Tree((1, 2), (-1, 0), (0.9, 0.8), ("suffix", "suffix"))
    assert planner.width(unlikely) == 0 and planner.width(likely) == 2
    dear = _planner([float(rows) for rows in range(MAX_ROWS + 1)])
    assert dear.width(likely) == 0


def test_costs_follow_the_machine() -> None:
    curve = CostCurve()
    start = list(curve.relative)
    assert [start[rows] for rows in KNOTS] == pytest.approx(FIRST_GUESS)
    for _ in range(60):
        for rows in (1, 12, 32):
            curve.observe(rows, 30.0 * rows)
    assert curve.relative[12] == pytest.approx(12.0, rel=0.1)
    assert curve.relative[32] == pytest.approx(32.0, rel=0.1)
    assert all(a <= b for a, b in pairwise(curve.relative)) and len(curve.relative) == MAX_ROWS + 1
    # Twice as slow a machine is no other shape.
    before = list(curve.relative)
    for _ in range(60):
        for rows in (1, 12, 32):
            curve.observe(rows, 60.0 * rows)
    assert curve.relative[12] == pytest.approx(before[12], rel=0.1)
    # Nobody decodes wide any more: the estimate returns to where it is tried again.
    for _ in range(4000):
        curve.observe(1, 60.0)
    assert curve.relative[32] == pytest.approx(start[32], rel=0.1)


def test_one_stalled_forward_does_not_end_drafting() -> None:
    planner = Planner()
    likely = Tree((1, 2, 3), (-1, 0, 1), (0.9, 0.8, 0.7), ("suffix",) * 3)
    for _ in range(5):
        planner.observe(1, 13.0)
    planner.observe(4, 5000.0)
    assert planner.width(likely) > 0


def test_chances_follow_what_happens() -> None:
    chances = Chances()
    assert all(0.0 < mean < 1.0 for mean in chances.mean)
    surer, less = kind(SUFFIX, 30, 0), kind(SUFFIX, 2, 0)
    assert chances.mean[surer] > chances.mean[less] and kind(SUFFIX, 1000, 0) == surer
    for _ in range(int(MEMORY)):
        chances.learn(surer, False)
        chances.learn(less, True)
    assert chances.mean[surer] < 0.3 and chances.mean[less] > 0.9


def _drafter(prompt: list[int], memory: DraftMemory | None = None, document: str = "") -> TreeDrafter:
    memory = memory or DraftMemory()
    return TreeDrafter(lambda: memory.history(document, tuple(prompt)), memory, Planner())


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 31), st.data())
def test_any_text_can_be_followed(tokens: list[int], limit: int, data: st.DataObject) -> None:
    memory = DraftMemory()
    memory.learn_text("other", [3, 1, 4, 1, 0, 2, 2, 3, 1, 4, 4])
    drafter = _drafter(tokens[:20], memory, "own")
    drafter.extend(tokens[20:22])
    for token in tokens[22:]:
        tree = drafter.propose(limit)
        check(tree)
        assert len(tree) <= limit
        tree = tree.head(data.draw(st.integers(0, len(tree))))
        chosen = data.draw(st.lists(st.integers(0, 4), min_size=len(tree) + 1, max_size=len(tree) + 1))
        drafter.verified(tree, [drafter._open().tokens[-1], *tree.tokens], chosen)
        drafter.extend([token])
    assert drafter._open().tokens == tokens


def test_alternatives_stand_beside_each_other() -> None:
    tree = _drafter([1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3, 7, 9, 1, 2, 3]).propose(DRAFT_LIMIT)
    first, second = tree.children(-1)[:2]
    assert (tree.tokens[first], tree.tokens[second]) == (7, 8), "the more frequent one first"


def test_a_copy_is_followed_to_the_limit() -> None:
    text = list(range(100, 160))
    tree = _drafter([*text, *text[:20]]).propose(DRAFT_LIMIT)
    assert tree.tokens == tuple(text[20 : 20 + DRAFT_LIMIT]) and tree.parents == tuple(
        range(-1, DRAFT_LIMIT - 1)
    )
    assert set(tree.sources) == {"suffix"}


def test_other_documents_help_until_they_are_closed() -> None:
    memory = DraftMemory()
    memory.learn_text("b.py", list(range(50, 80)))
    tree = _drafter([1, 2, *range(50, 62)], memory).propose(4)
    assert tree.tokens[0] == 62 and tree.sources[0] == "shared"
    memory.close_document("b.py")
    assert _drafter([1, 2, *range(50, 62)], memory).propose(4) == EMPTY


def test_rows_of_a_tree_teach_behind_their_own_parents() -> None:
    memory = DraftMemory()
    drafter = _drafter([5, 6, 1, 7, 5, 6, 1, 8, 5, 6, 1], memory)
    tree = drafter.propose(6)
    roots = tree.children(-1)
    assert {tree.tokens[root] for root in roots} == {7, 8} and len(tree) > 2
    chosen = [9, *range(20, 20 + len(tree))]
    drafter.verified(tree, [1, *tree.tokens], chosen, [[token, 3, 4] for token in chosen])
    for root in roots:
        choice = chosen[root + 1]
        assert memory.recycling.after_pair(1, tree.tokens[root]) == (choice, 3, 4)
    with pytest.raises(AssertionError):
        drafter.verified(tree, [1, 99], [9, 9])


@given(_CHAINS, st.integers(0, 6))
def test_parts_of_a_tree(chains: list[tuple[list[int], float]], depth: int) -> None:
    tree = _merged(chains)
    flat = tree.shallow(depth)
    check(flat)
    kept = {tree.chain(node) for node in range(len(tree)) if len(tree.chain(node)) <= depth}
    assert {flat.chain(node) for node in range(len(flat))} == kept
    spine = tree.spine()
    check(spine)
    assert spine.parents == tuple(range(-1, len(spine) - 1))
    assert len(tree) == 0 or spine.tokens[0] == tree.tokens[0]
    assert tree.depths() == [0, *(len(tree.chain(node)) for node in range(len(tree)))]


def test_what_was_not_drafted_is_judged_too() -> None:
    drafter = _drafter([5, 6, 1, 7, 5, 6, 1, 7, 5, 6, 1])
    guess = _guesses(drafter)[7]
    before = drafter._chances.mean[guess]
    drafter.verified(EMPTY, [1], [7])
    assert drafter._chances.mean[guess] > before


def _guesses(drafter: TreeDrafter) -> dict[int, int]:
    drafter.propose(4)
    return drafter._guesses[-1]
