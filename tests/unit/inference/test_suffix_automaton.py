"""The automaton against brute force, and the histories that keep it between requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inference.drafting.history import JOINT, SLACK, Histories
from inference.drafting.suffix_automaton import MAX_DEPTH, SuffixAutomaton

_TOKENS = st.lists(st.integers(0, 3), max_size=40)


def _built(tokens: list[int], piece: int = 1000) -> SuffixAutomaton:
    automaton = SuffixAutomaton()
    for start in range(0, len(tokens), piece):
        automaton.extend(tokens[start : start + piece])
    return automaton


def _occurrences(tokens: list[int], part: list[int]) -> list[int]:
    """Indices just behind every occurrence."""
    return [end for end in range(len(part), len(tokens) + 1) if tokens[end - len(part) : end] == part]


def _longest_earlier(tokens: list[int]) -> int:
    lengths = range(1, len(tokens))
    return max((n for n in lengths if len(_occurrences(tokens, tokens[-n:])) > 1), default=0)


@given(_TOKENS, st.integers(1, 7))
def test_it_knows_the_longest_match_and_all_that_followed(tokens: list[int], piece: int) -> None:
    automaton = _built(tokens, piece)
    assert automaton.tokens == tokens and len(automaton) == len(tokens)
    state, length = automaton.match()
    assert length == _longest_earlier(tokens)
    if length:
        ending = tokens[len(tokens) - length :]
        behind = {tokens[end] for end in _occurrences(tokens, ending) if end < len(tokens)}
        assert set(automaton.next[state]) == behind
        # The occurrence at the very end does not count yet.
        earlier = _occurrences(tokens, ending)[:-1]
        assert (automaton.count[state], automaton.end[state]) == (len(earlier), earlier[-1])


@given(_TOKENS, _TOKENS)
def test_walking_finds_the_longest_match_of_any_text(tokens: list[int], walk: list[int]) -> None:
    automaton = _built(tokens)
    state = length = 0
    for at, token in enumerate(walk, 1):
        state, length = automaton.step(state, length, token)
        longest = max(n for n in range(at + 1) if n == 0 or _occurrences(tokens, walk[at - n : at]))
        assert length == longest


def test_it_does_not_depend_on_pieces() -> None:
    tokens = [1, 2, 1, 2, 3, 1, 2, 1, 1, 1, 2, 3] * 3
    whole, pieces = _built(tokens), _built(tokens, 1)
    for name in ("next", "link", "length", "end", "count"):
        assert getattr(whole, name) == getattr(pieces, name)


def test_one_token_over_and_over_stays_cheap() -> None:
    automaton = _built([7] * 500)
    assert automaton.match()[1] == 499
    assert sum(automaton.count) < 500 * (MAX_DEPTH + 2)


def test_typing_appends_only_what_is_new() -> None:
    histories = Histories()
    prompt = tuple(range(300))
    first = histories.acquire("a", prompt)
    first.extend([900, 901])
    typed = (*prompt[:250], 7, *prompt[250:])
    second = histories.acquire("a", typed)
    assert second is first
    assert len(second) == 302 + len(typed) - 250 + JOINT
    assert second.tokens[-len(typed) + 250 :] == list(typed[250:])
    second.extend([900])
    state, _ = second.match()
    assert 901 in second.next[state], "the answer before is a good guess"


def test_histories_are_bounded() -> None:
    histories = Histories(limit=2)
    prompts = [tuple(range(start, start + 1500)) for start in range(0, 20000, 1500)]
    for prompt in prompts:
        history = histories.acquire("a", prompt)
        assert history.tokens[-1500:] == list(prompt) and len(history) <= 1500 + SLACK
    kept = histories.acquire("a", prompts[-1])
    histories.acquire("b", (1, 2))
    histories.acquire("c", (1, 2))
    assert histories.acquire("a", prompts[-1]) is not kept, "the oldest of three"
    kept = histories.acquire("a", prompts[-1])
    histories.forget("a")
    assert histories.acquire("a", prompts[-1]) is not kept
    assert histories.acquire("", (1, 2)) is not histories.acquire("", (1, 2)), (
        "nothing is kept without a name"
    )
