"""The suffix index finds the longest match; the planner spends only where it pays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inference.drafting.drafter import CopyDrafter
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


def _ahead(pointer: SourcePointer, sequence: list[int], count: int) -> list[int]:
    assert pointer.position is not None
    return sequence[pointer.position : pointer.position + count]


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
        assert _ahead(pointer, sequence, 2) == list(ahead), tokens
    assert pointer.run == 1


def test_the_pointer_is_lifted_when_nothing_fits() -> None:
    sequence = [*range(10, 60), 5]
    pointer = SourcePointer(sequence)
    pointer.place(0, 3)
    _edited(pointer, sequence, [100 + i for i in range(PATIENCE)])
    assert pointer.position is not None
    _edited(pointer, sequence, [200])
    assert pointer.position is None


def test_a_copy_that_is_announced_is_waited_for() -> None:
    sequence = [*range(10, 40), 5]
    pointer = SourcePointer(sequence)
    pointer.await_copy(10)
    assert _ahead(pointer, sequence, 2) == [20, 21]
    _edited(pointer, sequence, [1, 2, 3, 4, 1, 2, 3])  # more than PATIENCE
    assert _ahead(pointer, sequence, 2) == [20, 21] and pointer.run == 0
    _edited(pointer, sequence, [20, 21])
    assert _ahead(pointer, sequence, 2) == [22, 23] and pointer.run == 2
    _edited(pointer, sequence, [99])
    assert _ahead(pointer, sequence, 1) == [23], "from its first token on it is a copy like any other"
    pointer.await_copy(10)
    _edited(pointer, sequence, [1] * WAIT)
    assert pointer.position is None


@given(st.lists(st.integers(0, 4), max_size=50), st.integers(0, 9), st.integers(0, 9))
def test_any_text_can_be_copied(tokens: list[int], limit: int, depth: int) -> None:
    one, pieces = CopyDrafter(tokens), CopyDrafter([])
    for token in tokens:
        pieces.extend([token])
        tree = pieces.propose(limit, depth)
        assert len(tree) <= min(limit, depth) and tree.spine() == tree
    assert one.propose(limit, depth) == pieces.propose(limit, depth)
