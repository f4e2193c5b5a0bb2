"""The drafter of ``auto``: one candidate tree from all sources, the likeliest nodes first.

At each node every source says what it would put there. A guess has the chance that guesses of its kind have
had so far (`chances.py`); where sources agree on a token the more confident one counts. The tree grows best
first by the product of the chances along the path, as SuffixDecoding's does (arXiv 2411.04975), down to the
chance below which no row is worth its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from inference.drafting import chances
from inference.drafting.base import Source
from inference.drafting.chances import POINTER, RECYCLING, SHARED, SOURCES, SUFFIX, kind
from inference.drafting.memory import DraftMemory
from inference.drafting.planner import Planner
from inference.drafting.shared_index import MAX_MATCH
from inference.drafting.source_pointer import SourcePointer
from inference.drafting.suffix_automaton import SuffixAutomaton
from inference.drafting.tree import EMPTY, Tree

ANNOUNCED = 4  # a copy that is expected counts as one that so many tokens long has been right
SURE = 12  # tokens of a match with one continuation from which on nobody else is asked
CONTINUATIONS = 2  # most of one match
PLACES = 2  # most in the shared index
PAIR_CANDIDATES, TOKEN_CANDIDATES = 3, 1  # most of the recycling table


class _Context(NamedTuple):
    """What the sources know about one node of the tree."""

    state: int  # of the automaton
    length: int  # of the match there
    pointer: int  # index of the token that the finger expects, -1 without one
    run: int  # tokens that have agreed under the finger
    places: list[tuple[int, int]]  # in the shared index, and the length of the match there
    before: int  # the last two tokens
    last: int


class TreeDrafter:
    """Follows one sequence.

    Attributes:
        match: tokens at the end of the sequence that have occurred before, as of the last tree.

    Args:
        open_history: gives an automaton whose sequence ends with the prompt. Called when it is first needed,
            so that the first token of an answer does not wait for it.
        copy_from: tokens before the end of the prompt where text begins that the answer is expected to copy.
    """

    def __init__(
        self,
        open_history: Callable[[], SuffixAutomaton],
        memory: DraftMemory,
        planner: Planner,
        copy_from: int | None = None,
    ) -> None:
        self._open_history = open_history
        self._copy_from = copy_from
        self._automaton: SuffixAutomaton | None = None
        self._pointer = SourcePointer([])
        self._early: list[int] = []
        self._recycling = memory.recycling
        self._shared = memory.shared
        self._planner = planner
        self._chances = planner.chances
        self._tree = EMPTY
        # For each node of the last tree that was looked at, -1 for the end of the sequence: kinds by token.
        self._guesses: dict[int, dict[int, int]] = {}
        self.match = 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens that are now part of the sequence, behind the prompt."""
        if self._automaton is None:
            self._early += tokens
            return
        for token in tokens:
            self._pointer.follow(token)
            self._automaton.extend([token])

    def propose(self, limit: int) -> Tree:
        """At most ``limit`` nodes; `Planner.width` says how many of them are worth verifying."""
        self._tree, self._guesses = EMPTY, {}
        automaton = self._open()
        sequence, pointer = automaton.tokens, self._pointer
        if limit <= 0 or len(sequence) < 2:
            return EMPTY
        state, length = automaton.match()
        self.match = length
        at, run = -1 if pointer.position is None else pointer.position, pointer.run
        if pointer.waiting:
            run = ANNOUNCED
        if length > run:
            source = automaton.end[state]
            # The automaton guesses the same there.
            at = -1 if at == source else at
            pointer.place(source, length)
        places = self._shared.lookup(sequence[-MAX_MATCH:], PLACES)
        self._grow(automaton, limit, _Context(state, length, at, run, places, sequence[-2], sequence[-1]))
        return self._tree

    def verified(
        self,
        tree: Tree,
        fed: Sequence[int],
        chosen: Sequence[int],
        top: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """Learn from a forward. To be called before `extend`.

        Args:
            tree: what was verified: part of the last tree, or what another drafter proposed.
            fed: the last token of the sequence and the nodes of the tree.
            chosen: for each of them the token that the model puts behind it.
            top: for each of them the likeliest tokens behind it in descending order, if known.
        """
        sequence = self._open().tokens
        assert tuple(fed[1:]) == tree.tokens and len(chosen) == len(fed), "not what was proposed"
        if len(sequence) > 1:
            rows = [-1, *(parent + 1 for parent in tree.parents)]
            self._recycling.learn(sequence[-2], fed, chosen, top, rows)
        # The same way through the tree that was guessed, as far as it goes.
        node = -1
        for row in (0, *(at + 1 for at in tree.taken(chosen))):
            right = chosen[row]
            for token, guess in self._guesses.get(node, {}).items():
                self._chances.learn(guess, token == right)
            behind = (n for n in self._tree.children(node) if self._tree.tokens[n] == right)
            node = next(behind, len(self._tree))

    def _open(self) -> SuffixAutomaton:
        if self._automaton is None:
            self._automaton = self._open_history()
            self._pointer = SourcePointer(self._automaton.tokens)
            if self._copy_from is not None:
                self._pointer.await_copy(len(self._automaton.tokens) - self._copy_from)
            early, self._early = self._early, []
            self.extend(early)
        return self._automaton

    def _grow(self, automaton: SuffixAutomaton, limit: int, root: _Context) -> None:
        """Fill ``_tree`` and ``_guesses``."""
        mean, floor = self._chances.mean, self._planner.floor
        tokens: list[int] = []
        parents: list[int] = []
        products: list[float] = []
        sources: list[Source] = []
        heap: list[tuple[float, int, int, int, int, _Context]] = []
        serial = 0
        node, product, context = -1, 1.0, root
        while True:
            guesses = self._guesses[node] = self._guess(automaton, context)
            for token, guess in guesses.items():
                chance = product * mean[guess]
                if chance >= floor:
                    serial += 1  # among equals the first one
                    heappush(heap, (-chance, serial, node, token, guess, context))
            if not heap or len(tokens) == limit:
                break
            negative, _, parent, token, guess, before = heappop(heap)
            node, product, context = len(tokens), -negative, self._behind(automaton, before, token)
            tokens.append(token)
            parents.append(parent)
            products.append(product)
            sources.append(SOURCES[guess >> 8])
        self._tree = Tree(tuple(tokens), tuple(parents), tuple(products), tuple(sources))

    def _behind(self, automaton: SuffixAutomaton, context: _Context, token: int) -> _Context:
        """One token further."""
        state, length, at, run, places, _, last = context
        sequence, shared = automaton.tokens, self._shared
        state, length = automaton.step(state, length, token)
        if 0 <= at < len(sequence):
            run = run + 1 if sequence[at] == token else 0  # else something was replaced
            at += 1
        if places:
            places = [(place + 1, match + 1) for place, match in places if shared.token(place) == token]
        return _Context(state, length, at, run, places, last, token)

    def _guess(self, automaton: SuffixAutomaton, context: _Context) -> dict[int, int]:
        """What might come, with the most confident kind of guess for each token."""
        state, length, at, run, places, before, last = context
        guesses: dict[int, int] = {}
        after = automaton.next[state] if state else {}
        if len(after) == 1:
            ((token, target),) = after.items()
            form = chances.ONLY_ONCE if automaton.count[target] == 1 else chances.ONLY
            guesses[token] = kind(SUFFIX, length, form)
            if length >= SURE:
                return guesses
        elif after:
            self._continuations(guesses, after, length, automaton)
        mean, sequence = self._chances.mean, automaton.tokens
        others: list[tuple[int, int]] = []
        if 0 <= at < len(sequence):
            others.append((sequence[at], kind(POINTER, run + 1, 0)))
        for rank, (place, match) in enumerate(places):
            found = self._shared.token(place)
            if found is not None:
                others.append((found, kind(SHARED, match, min(rank, 1))))
        pair = self._recycling.after_pair(before, last)
        for rank, token in enumerate(pair[:PAIR_CANDIDATES]):
            others.append((token, kind(RECYCLING, 2, rank)))
        single = PAIR_CANDIDATES if pair else 0
        for rank, token in enumerate(self._recycling.after_token(last)[:TOKEN_CANDIDATES]):
            others.append((token, kind(RECYCLING, 1, single + rank)))
        for token, guess in others:
            if token not in guesses or mean[guess] > mean[guesses[token]]:
                guesses[token] = guess
        return guesses

    @staticmethod
    def _continuations(
        guesses: dict[int, int], after: dict[int, int], length: int, automaton: SuffixAutomaton
    ) -> None:
        """The most frequent continuations of a match, the most recent first among equals."""
        count, end = automaton.count, automaton.end
        ranked = sorted(((count[state], end[state], token) for token, state in after.items()), reverse=True)
        total = sum(occurrences for occurrences, _, _ in ranked)
        form = chances.DOMINANT if ranked[0][0] > chances.DOMINANCE * total else chances.FIRST
        for rank, (_, _, token) in enumerate(ranked[:CONTINUATIONS]):
            guesses[token] = kind(SUFFIX, length, chances.FIRST + rank if rank else form)
