"""The suffix index finds the longest match; the planner spends only where it pays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inference.drafting.planner import DRAFT_LIMIT, Planner
from inference.drafting.suffix_index import MAX_MATCH, MIN_MATCH, SuffixIndex


def _longest(tokens: list[int]) -> int:
    """Length of the longest ending that also occurs earlier, by trying them all."""
    size = len(tokens)
    best = 0
    for end in range(1, size):
        length = 0
        while length < min(end, MAX_MATCH) and tokens[end - 1 - length] == tokens[size - 1 - length]:
            length += 1
        best = max(best, length)
    return best if best >= MIN_MATCH else 0


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 12))
def test_longest_match_wins(tokens: list[int], limit: int) -> None:
    index = SuffixIndex()
    for token in tokens:
        index.extend([token])
    whole = SuffixIndex()
    whole.extend(tokens)
    proposal = index.propose(limit)
    assert proposal == whole.propose(limit)
    assert len(proposal.tokens) <= limit
    if limit and len(tokens) > MIN_MATCH:
        assert proposal.match == _longest(tokens)
        assert bool(proposal.tokens) == (proposal.match > 0)


def test_most_recent_of_equal_matches() -> None:
    index = SuffixIndex()
    index.extend([1, 2, 7, 1, 2, 8, 1, 2])
    assert index.propose(1).tokens == (8,)


def test_a_match_at_the_end_repeats_its_period() -> None:
    index = SuffixIndex()
    index.extend([9, 4, 5, 4, 5, 4, 5])
    assert index.propose(5).tokens == (4, 5, 4, 5, 4)


def test_nothing_to_copy() -> None:
    index = SuffixIndex()
    assert index.propose(4).tokens == ()
    index.extend([1, 2, 3, 4])
    assert index.propose(4).tokens == ()


def test_planner_follows_success() -> None:
    planner = Planner()
    start = planner.width(3)
    for _ in range(30):
        planner.accepted(3, 4, 4)
    assert planner.width(3) > start
    for _ in range(60):
        planner.accepted(3, 4, 0)
    assert planner.width(3) == 1
    assert planner.width(0) == 0


def test_planner_follows_cost() -> None:
    cheap, dear = Planner(), Planner()
    for _ in range(80):
        for planner, wide in ((cheap, 31.0), (dear, 200.0)):
            planner.observe(1, 30.0)
            planner.observe(16, wide)
    assert cheap.row_cost < 0.01 < 0.3 < dear.row_cost
    assert cheap.width(2) > dear.width(2) >= 1
    assert cheap.width(8) <= DRAFT_LIMIT
