"""The shared index finds the best places, stays in its bounds, and forgets; texts wait in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.drafting import lessons as lessons_module
from inference.drafting.lessons import PIECE_CHARS, Lessons, Piece
from inference.drafting.memory import DraftMemory
from inference.drafting.shared_index import MAX_MATCH, SHORT, SharedIndex

_TEXTS = st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=6)


def _matches(texts: list[list[int]], ending: list[int]) -> dict[int, int]:
    """For each token that ever followed, the longest match before it."""
    best: dict[int, int] = {}
    for text in texts:
        for at in range(SHORT, len(text)):
            length = 0
            while length < min(at, len(ending)) and text[at - 1 - length] == ending[-1 - length]:
                length += 1
            if length >= SHORT:
                best[text[at]] = max(best.get(text[at], 0), length)
    return best


@given(_TEXTS, st.lists(st.integers(0, 2), max_size=8))
def test_places_are_what_they_seem(texts: list[list[int]], ending: list[int]) -> None:
    index = SharedIndex(1 << 10)
    for number, text in enumerate(texts):
        index.add(text, str(number))
    known = _matches(texts, ending)
    places = index.lookup(ending, 3)
    assert bool(places) == bool(known)
    tokens = [index.token(place) for place, _ in places]
    assert len(set(tokens)) == len(tokens)
    assert [length for _, length in places] == sorted((length for _, length in places), reverse=True)
    for token, (_, length) in zip(tokens, places, strict=True):
        assert token is not None and length <= known[token]


def test_the_longest_match_wins_and_then_the_newest() -> None:
    index = SharedIndex(1 << 10)
    index.add([9, 1, 2, 3, 4, 50], "a")
    index.add([8, 1, 2, 3, 4, 60], "b")
    index.add([7, 1, 2, 3, 4, 70], "c")
    places = index.lookup([9, 1, 2, 3, 4], 3)
    assert [(index.token(place), length) for place, length in places] == [(50, 5), (70, 4), (60, 4)]
    assert index.token(places[0][0] + 1) is None, "a text ends"
    assert index.lookup([3, 4], 1) == [(places[1][0], 2)]
    assert index.lookup([4, 3], 1) == [] and index.lookup([4], 1) == []


@given(st.integers(0, 400), st.integers(3, 40))
def test_old_text_is_overwritten(count: int, size: int) -> None:
    index = SharedIndex(256)
    for number in range(count):
        index.add(range(number * 100, number * 100 + size), str(number))
        assert len(index) <= 256
    fitting = 256 // (size + 1)
    for number in range(count):
        start = number * 100
        found = index.lookup([start, start + 1], 1)
        if number >= count - fitting:
            assert index.token(found[0][0]) == start + 2
        elif number < count - fitting - 1:
            assert not found
    assert len(index.owners) <= fitting + 1


def test_a_text_longer_than_the_index() -> None:
    index = SharedIndex(256)
    index.add(range(10_000), "a")
    assert index.lookup([100, 101], 1) == []
    ((place, length),) = index.lookup(list(range(9900, 9990)), 1)
    assert index.token(place) == 9990 and length == MAX_MATCH


def test_forgotten_text_is_gone() -> None:
    index = SharedIndex(256)
    index.add([1, 2, 3, 4], "secret")
    index.add([1, 2, 5, 6], "open")
    index.forget("secret")
    assert [index.token(place) for place, _ in index.lookup([1, 2], 3)] == [5]
    assert not {3, 4} & set(index._ring) and index.owners == {"open"}
    index.forget("open")
    assert not index._ring and len(index) == 0, "the memory is given back"
    index.add([1, 2, 3], "open")
    assert index.lookup([1, 2], 1)


def test_text_that_wraps_around_is_forgotten_whole() -> None:
    index = SharedIndex(64)
    index.add(range(100, 140), "old")
    index.add(range(200, 240), "new")
    assert index.owners == {"old", "new"}
    index.forget("new")
    assert not set(range(200, 240)) & set(index._ring)
    assert set(range(117, 140)) <= set(index._ring) and index.owners == {"old"}


@pytest.mark.parametrize("capacity", [0, 16, 1000])
def test_capacities_are_powers_of_two(capacity: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        SharedIndex(capacity)


def test_a_new_version_replaces_the_old_one() -> None:
    memory = DraftMemory()
    memory.learn_text("a", [1, 2, 3])
    memory.learn_more("a", [4, 5, 6])
    memory.learn_answer("a", [7, 8, 9])
    assert memory.shared.lookup([4, 5], 1)
    memory.learn_text("a", [1, 2, 30])
    assert not memory.shared.lookup([4, 5], 1) and memory.shared.lookup([7, 8], 1)
    assert memory.shared.token(memory.shared.lookup([1, 2], 1)[0][0]) == 30
    memory.close_document("a")
    assert not memory.shared.owners
    memory.learn_text("", [1, 2, 3])
    memory.learn_answer("", [1, 2, 3])
    assert not memory.shared.owners, "nobody could ask to forget it"


def test_texts_wait_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons_module, "MAX_TEXTS", 2)
    lessons = Lessons()
    assert not lessons
    text = "".join(f"line {number}\n" for number in range(1000))
    lessons.put("old", "x")
    lessons.put("gone", "x")
    lessons.put("a", text)
    lessons.drop("gone")
    pieces: list[Piece] = []
    while lessons:
        pieces.append(lessons.take())
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.first for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert all(len(piece.text) <= PIECE_CHARS and piece.text.endswith("\n") for piece in pieces)
    lessons.put("a", "x" * (2 * PIECE_CHARS))
    assert len(lessons.take().text) == PIECE_CHARS, "one long line is cut all the same"
    lessons.put("a", "anew")
    assert lessons.take() == Piece("a", "anew", True) and not lessons
