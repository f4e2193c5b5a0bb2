"""Prompt-lookup drafting: what followed the longest earlier occurrence of the current ending.

The idea is prompt lookup decoding (A. Saxena, 2023) with the longest instead of a fixed-length
match, and the most recent among equally long ones: code repeats its nearest neighbour.
"""

from __future__ import annotations

from inference.drafting.base import NOTHING, Proposal

MIN_MATCH = 2  # single tokens repeat by chance all over code
MAX_MATCH = 64
MAX_CANDIDATES = 128  # most recent occurrences looked at; bounds the work on `    ` or `,\n`


class SuffixIndex:
    """Positions of every pair of adjacent tokens; O(1) per appended token.

    Attributes:
        tokens: the sequence; to be read only.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._ends: dict[tuple[int, int], list[int]] = {}  # pair -> indices just after it, ascending

    def extend(self, tokens: list[int]) -> None:
        """Append tokens to the sequence."""
        start = len(self.tokens)
        self.tokens.extend(tokens)
        sequence, ends = self.tokens, self._ends
        for i in range(max(start, 1), len(sequence)):
            ends.setdefault((sequence[i - 1], sequence[i]), []).append(i + 1)

    def propose(self, limit: int) -> Proposal:
        """The continuation of the longest match.

        A match that runs into the end of the sequence is continued by its own draft, so that a
        period shorter than the draft (indentation, tables) repeats.
        """
        sequence = self.tokens
        size = len(sequence)
        if limit <= 0 or size < MIN_MATCH + 1:
            return NOTHING
        candidates = self._ends.get((sequence[-2], sequence[-1]), ())
        best, best_length = -1, 0
        for end in reversed(candidates[-MAX_CANDIDATES - 1 :]):
            if end == size:
                continue  # the current ending itself
            length = self._match_length(end, best_length)
            if length > best_length:
                best, best_length = end, length
                if length >= MAX_MATCH:
                    break
        if best_length < MIN_MATCH:
            return NOTHING
        draft: list[int] = []
        for i in range(best, best + limit):
            draft.append(sequence[i] if i < size else draft[i - size])
        return Proposal(tuple(draft), best_length, "suffix")

    def _match_length(self, end: int, beat: int) -> int:
        """How many tokens before ``end`` equal the ending; 0 early if it cannot beat ``beat``."""
        sequence = self.tokens
        size = len(sequence)
        if beat and (end < beat + 1 or sequence[end - beat - 1] != sequence[size - beat - 1]):
            return 0
        limit = min(end, MAX_MATCH)
        length = 0
        while length < limit and sequence[end - 1 - length] == sequence[size - 1 - length]:
            length += 1
        return length
