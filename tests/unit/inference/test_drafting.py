"""The suffix index finds the longest match; the planner spends only where it pays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inference.drafting.base import NOTHING, Proposal, Source
from inference.drafting.chain import ChainDrafter
from inference.drafting.planner import DRAFT_LIMIT, Planner
from inference.drafting.recycling import RecyclingTable
from inference.drafting.source_pointer import PATIENCE, WAIT, SourcePointer
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


def _proposal(match: int, source: Source = "suffix") -> Proposal:
    return Proposal((1,) * DRAFT_LIMIT, match, source)


def test_planner_follows_success() -> None:
    planner = Planner()
    proposal = _proposal(3)
    start = planner.width(proposal)
    for _ in range(30):
        planner.accepted(proposal, 4, 4)
    assert planner.width(proposal) > start
    for _ in range(60):
        planner.accepted(proposal, 4, 0)
    assert planner.width(proposal) == 1
    assert planner.width(NOTHING) == 0


def test_planner_tells_drafters_and_lengths_apart() -> None:
    planner = Planner()
    for _ in range(40):
        planner.accepted(_proposal(2, "recycling"), 4, 0)
        planner.accepted(_proposal(50), 4, 4)
    assert planner.width(_proposal(2, "recycling")) == 1 < planner.width(_proposal(2))
    assert planner.width(_proposal(64)) == DRAFT_LIMIT > planner.width(_proposal(9))
    assert planner.chance(_proposal(41)) > planner.chance(_proposal(5)) > planner.chance(NOTHING) == 0.0


def test_planner_follows_cost() -> None:
    cheap, dear = Planner(), Planner()
    for _ in range(80):
        for planner, wide in ((cheap, 31.0), (dear, 200.0)):
            planner.observe(1, 30.0)
            planner.observe(16, wide)
    assert cheap.row_cost < 0.01 < 0.3 < dear.row_cost
    assert cheap.width(_proposal(2)) > dear.width(_proposal(2)) >= 1
    assert cheap.width(_proposal(8)) <= DRAFT_LIMIT


def _edited(pointer: SourcePointer, sequence: list[int], tokens: list[int]) -> None:
    for token in tokens:
        pointer.follow(token)
        sequence.append(token)


def test_the_pointer_stays_across_changes() -> None:
    source = list(range(10, 30))
    for tokens, ahead in (
        ([10, 11, 12], (13, 14)),
        ([10, 99], (12, 13)),  # replaced
        ([10, 14], (15, 16)),  # left out
        ([10, 99, 12], (13, 14)),
    ):
        sequence = [*source, 5]
        pointer = SourcePointer(sequence)
        pointer.place(0, 3)
        _edited(pointer, sequence, tokens)
        assert pointer.ahead(2) == ahead, tokens
    assert pointer.run == 1


def test_the_pointer_is_lifted_when_nothing_fits() -> None:
    sequence = [*range(10, 60), 5]
    pointer = SourcePointer(sequence)
    pointer.place(0, 3)
    _edited(pointer, sequence, [100 + i for i in range(PATIENCE)])
    assert pointer.position is not None
    _edited(pointer, sequence, [200])
    assert pointer.position is None and pointer.ahead(3) == ()


def test_a_copy_that_is_announced_is_waited_for() -> None:
    sequence = [*range(10, 40), 5]
    pointer = SourcePointer(sequence)
    pointer.await_copy(10)
    assert pointer.ahead(2) == (20, 21)
    _edited(pointer, sequence, [1, 2, 3, 4, 1, 2, 3])  # more than PATIENCE
    assert pointer.ahead(2) == (20, 21) and pointer.run == 0
    _edited(pointer, sequence, [20, 21])
    assert pointer.ahead(2) == (22, 23) and pointer.run == 2
    _edited(pointer, sequence, [99])
    assert pointer.ahead(1) == (23,), "from its first token on it is a copy like any other"
    pointer.await_copy(10)
    _edited(pointer, sequence, [1] * WAIT)
    assert pointer.position is None


def test_the_chain_takes_the_likeliest_source() -> None:
    table = RecyclingTable()
    chain = ChainDrafter(table, Planner().chance)
    assert chain.propose(4) == NOTHING
    table.learn(1, [2], [3])
    chain.extend([1, 2])
    assert chain.propose(4) == Proposal((3,), 2, "recycling")
    chain.extend([50, 51, 52, 53, 54, 55, 1, 2, 50, 51])
    assert chain.propose(2) == Proposal((52, 53), 4, "suffix")
    chain.extend([99])  # one token is replaced: no match, but the finger is still there
    assert chain.propose(2) == Proposal((53, 54), 0, "pointer")
    chain.extend([53])
    assert chain.propose(2) == Proposal((54, 55), 1, "pointer")
    chain.extend([54])
    assert chain.propose(1).tokens == (55,)


@given(st.lists(st.integers(0, 4), max_size=50), st.integers(0, 9))
def test_any_text_can_be_followed(tokens: list[int], limit: int) -> None:
    one, pieces = (ChainDrafter(RecyclingTable(), Planner().chance) for _ in range(2))
    one.extend(tokens)
    for token in tokens:
        pieces.extend([token])
        assert len(pieces.propose(limit).tokens) <= limit
    assert one._index.tokens == pieces._index.tokens == tokens


def test_dear_rows_are_tried_again_one_day() -> None:
    planner = Planner()
    for _ in range(60):
        planner.observe(1, 30.0)
        planner.observe(16, 900.0)
    assert planner.width(_proposal(5)) <= 1
    for _ in range(2000):
        planner.observe(1, 30.0)
    assert planner.width(_proposal(5)) > 4
