"""The ways to an answer that must not change it, and how a run draws from them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from inference.api import Draft

# What the caches know before the request:
# fresh: nothing of this prompt is read from a cache.
# typed: earlier keys of the same line.
# forked: another document with the same beginning, and nothing of this one.
# unrelated: another document; what it left in the slot is still in the buffers.
# kept: this prompt's own keys and values, as the plain answer left them.
Cache = Literal["fresh", "typed", "forked", "unrelated", "kept"]
Level: TypeAlias = "str | int | float"
T = TypeVar("T")

DRAFTS: tuple[Draft, ...] = ("none", "ngram", "auto")
# Most tokens drafted for one forward; 0 stands for a drafter that drafts none.
LIMITS = (1, 4, 8, 31)
CACHES: tuple[Cache, ...] = ("fresh", "typed", "forked", "unrelated", "kept")
# The last one is no multiple of the tiles of 16 rows that kernels work in.
CHUNKS = (16, 128, 512, 77)
THREADS = (1, 2)
# 0 is greedy; with the other one goes TOP_P.
TEMPERATURES = (0.0, 0.8)
TOP_P = 0.95

# A longer prompt is seldom read anew: reading it costs more than all that follows.
LONG = 1024
_READS_ANEW: tuple[Cache, ...] = ("fresh", "unrelated")
_LONG_CACHES: tuple[Cache, ...] = ("typed", "forked", "kept") * 3 + _READS_ANEW


@dataclass(frozen=True)
class Variant:
    """One way to the answer.

    Attributes:
        limit: most tokens drafted for one forward; 0 without drafts.
        chunk: prompt tokens of a forward.
        threads: of torch; None leaves them as they are.
    """

    draft: Draft
    limit: int
    cache: Cache
    chunk: int
    threads: int | None = None


PLAIN = Variant("none", 0, "fresh", 128)


class Variants:
    """Draws ways at random, but each level of each factor about as often as the others.

    Args:
        threads: numbers to vary over; none where the bits may depend on them.
    """

    def __init__(self, seed: int, threads: Sequence[int] = THREADS) -> None:
        generator = random.Random(seed)
        self._threads: tuple[int | None, ...] = tuple(threads) or (None,)
        self._deck_of_drafts: _Deck[Draft] = _Deck(DRAFTS, generator)
        self._deck_of_limits = _Deck(LIMITS, generator)
        self._deck_of_caches: _Deck[Cache] = _Deck(CACHES, generator)
        self._deck_of_long_caches: _Deck[Cache] = _Deck(_LONG_CACHES, generator)
        self._deck_of_chunks = _Deck(CHUNKS, generator)
        self._deck_of_threads = _Deck(self._threads, generator)
        self._deck_of_temperatures = _Deck(TEMPERATURES, generator)

    def draw(self, count: int, prompt_tokens: int) -> list[Variant]:
        """``count`` ways for a prompt of so many tokens."""
        caches = self._deck_of_caches if prompt_tokens <= LONG else self._deck_of_long_caches
        found = []
        for _ in range(count):
            draft = self._deck_of_drafts.next()
            limit = self._deck_of_limits.next() if draft != "none" else 0
            found.append(
                Variant(
                    draft, limit, caches.next(), self._deck_of_chunks.next(), self._deck_of_threads.next()
                )
            )
        return found

    def temperature(self) -> float:
        """Of a prompt and all its ways."""
        return self._deck_of_temperatures.next()

    def every(self) -> list[Variant]:
        """All combinations."""
        limits = {draft: (0,) if draft == "none" else LIMITS for draft in DRAFTS}
        return [
            Variant(draft, limit, cache, chunk, threads)
            for draft in DRAFTS
            for limit, cache, chunk, threads in itertools.product(
                limits[draft], CACHES, CHUNKS, self._threads
            )
        ]

    def levels(self) -> dict[str, tuple[Level, ...]]:
        """What must have been seen before a run proves something, by factor."""
        levels: dict[str, tuple[Level, ...]] = {
            "drafter": DRAFTS,
            "draft limit": LIMITS,
            "cache": CACHES,
            "prefill chunk": CHUNKS,
            "temperature": TEMPERATURES,
        }
        threads = tuple(number for number in self._threads if number is not None)
        return {**levels, "threads": threads} if threads else levels


class _Deck(Generic[T]):
    """All of some values in random order, and again."""

    def __init__(self, values: Sequence[T], generator: random.Random) -> None:
        self._values, self._generator = list(values), generator
        self._cards = self._shuffled()

    def next(self) -> T:
        return next(self._cards)

    def _shuffled(self) -> Iterator[T]:
        while True:
            self._generator.shuffle(self._values)
            yield from list(self._values)
