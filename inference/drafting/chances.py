"""How often guesses of each kind have been right.

A kind is who guessed, how much of the text before the guess agreed, and which of its guesses it was. Every
guess at a place that the model then decided counts, also one that was too unlikely to be verified: what the
model put there is known. So an estimate recovers without any draft being spent on trying.
"""

from __future__ import annotations

from inference.drafting.base import Source

SOURCES: tuple[Source, ...] = ("suffix", "pointer", "shared", "recycling")
SUFFIX, POINTER, SHARED, RECYCLING = range(len(SOURCES))

# What a guess of the suffix automaton is among the continuations of its match.
ONLY_ONCE, ONLY, DOMINANT, FIRST, SECOND, THIRD = range(6)
DOMINANCE = 0.6  # share of the occurrences from which on the most frequent one is dominant

# Longer matches are surer; these are told apart.
_STEPS = (1, 2, 3, 4, 5, 7, 10, 15, 25)
_LONGEST = _STEPS[-1]
_BUCKET = tuple(sum(length >= step for step in _STEPS) for length in range(_LONGEST + 1))

# An estimate is a mean over this many of the last guesses of its kind; the prior counts as some of them.
MEMORY = 100.0
PRIOR_TRIALS = 6.0

# Until there is experience: measured on the 0.5B's answers to HumanEval-Infilling, EditEval, places in real
# files and plain instructions. By source and form, for each of ``_STEPS``; the last holds for longer ones.
_PRIORS: dict[int, tuple[tuple[float, ...], ...]] = {
    SUFFIX: (
        (0.36, 0.64, 0.70, 0.80, 0.85, 0.87, 0.91, 0.95, 0.98),
        (0.42, 0.72, 0.85, 0.85, 0.90, 0.95, 0.96, 0.97, 0.97),
        (0.45, 0.65, 0.65, 0.65, 0.70),
        (0.11, 0.29, 0.40, 0.35, 0.45, 0.50),
        (0.16, 0.19, 0.15, 0.25),
        (0.07, 0.15, 0.10),
    ),
    POINTER: ((0.04, 0.30, 0.40, 0.50, 0.70, 0.75, 0.80),),
    SHARED: (
        (0.05, 0.07, 0.10, 0.12, 0.20, 0.50, 0.60, 0.70, 0.80),
        (0.03, 0.05, 0.08, 0.08, 0.10, 0.20),
    ),
    # Of two tokens, by rank; then of one token where the two are unknown, and where they are known.
    RECYCLING: ((0.15, 0.35), (0.03, 0.07), (0.02, 0.03), (0.07,), (0.03,)),
}


def kind(source: int, length: int, form: int) -> int:
    """The number of a kind.

    Args:
        source: one of the constants above.
        length: tokens before the guess that agree with the place it was copied from, 1 or more.
        form: below 16; which of the source's guesses it was.
    """
    return source << 8 | _BUCKET[length if length < _LONGEST else _LONGEST] << 4 | form


class Chances:
    """Belongs to the worker thread; outlives requests and holds no text.

    Attributes:
        mean: chance of each kind; to be read only.
    """

    def __init__(self) -> None:
        self.mean = [0.1] * (len(SOURCES) << 8)
        self._trials = [PRIOR_TRIALS] * len(self.mean)
        for source, forms in _PRIORS.items():
            for form, chances in enumerate(forms):
                for at, length in enumerate(_STEPS):
                    self.mean[kind(source, length, form)] = chances[min(at, len(chances) - 1)]

    def learn(self, kind: int, right: bool) -> None:
        """One guess of a kind was right or wrong."""
        trials = self._trials[kind] = min(self._trials[kind] + 1.0, MEMORY)
        self.mean[kind] += ((1.0 if right else 0.0) - self.mean[kind]) / trials
