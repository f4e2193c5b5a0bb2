"""A bounded n-gram index over text of all documents: files of the workspace and what was generated lately.

A ring buffer of tokens with hash chains, as LZ77 compressors have them: for each hash of two and of four
tokens the most recent place behind them, and for each place the one before it with the same hash. Places are
compared with the context token by token, so that a collision costs time and never makes a wrong match.
Everything lies in arrays of fixed size; new text overwrites the oldest. Nothing is ever written to disk.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence

CAPACITY = 1 << 19  # tokens; some 50 000 lines of code
SHORT, LONG = 2, 4  # tokens of context that are hashed
MAX_MATCH = 16
MAX_CANDIDATES = 8  # most recent places looked at for each hash; bounds the work

_LAST_PLACE = (1 << 31) - 2  # what an array of C ints holds
_GAP = -1  # no token: between texts, and where a text was forgotten


class SharedIndex:
    """Belongs to the worker thread. Takes 20 bytes per token of ``capacity``, from the first text on.

    Args:
        capacity: tokens, a power of two.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 2 * MAX_MATCH or capacity & (capacity - 1):
            raise ValueError(f"the capacity must be a power of two from {2 * MAX_MATCH} on, not {capacity}")
        self.capacity = capacity
        self._mask = capacity - 1
        self._texts: deque[tuple[str, int, int]] = deque()  # owner, first place, place behind the last
        self.clear()

    def clear(self) -> None:
        """Forget everything, and give the memory back."""
        self._head = 1  # place of the next token; 0 stands for "nowhere"
        self._ring = array("i")
        self._short, self._older_short = array("i"), array("i")
        self._long, self._older_long = array("i"), array("i")
        self._texts.clear()

    @property
    def owners(self) -> set[str]:
        """Whose text is in the index."""
        return {owner for owner, _, _ in self._texts}

    def __len__(self) -> int:
        """Places of the ring that are in use, those between texts included."""
        return min(self._head - 1, self.capacity)

    def add(self, tokens: Sequence[int], owner: str) -> None:
        """Append a text; of one that is longer than the index the end is kept."""
        tokens = tokens[1 - self.capacity :]
        if len(tokens) <= SHORT:
            return  # it has no context with something behind it
        if self._head + len(tokens) >= _LAST_PLACE:
            self.clear()
        if not self._ring:
            empty = bytes(4 * self.capacity)
            self._ring = array("i", empty)
            self._short, self._older_short = array("i", empty), array("i", empty)
            self._long, self._older_long = array("i", empty), array("i", empty)
        ring, mask = self._ring, self._mask
        short, older_short, long, older_long = self._short, self._older_short, self._long, self._older_long
        ring[self._head & mask] = _GAP
        place = first = self._head + 1
        a = b = c = d = _GAP
        for token in tokens:
            at = place & mask
            ring[at] = token
            if c != _GAP:
                hashed = _hash2(c, d) & mask
                older_short[at], short[hashed] = short[hashed], place
            if a != _GAP:
                hashed = _hash4(a, b, c, d) & mask
                older_long[at], long[hashed] = long[hashed], place
            a, b, c, d = b, c, d, token
            place += 1
        self._head = place
        self._texts.append((owner, first, place))
        while self._texts[0][2] <= place - self.capacity:
            self._texts.popleft()

    def forget(self, owner: str) -> None:
        """Overwrite what is there of an owner's texts."""
        kept: deque[tuple[str, int, int]] = deque()
        for text in self._texts:
            if text[0] != owner:
                kept.append(text)
                continue
            begin, end = max(text[1], self._head - self.capacity), text[2]
            while begin < end:
                # Up to the end of the ring, and then from its beginning on.
                at = begin & self._mask
                count = min(end - begin, self.capacity - at)
                self._ring[at : at + count] = array("i", [_GAP]) * count
                begin += count
        self._texts = kept
        if not kept:
            self.clear()

    def lookup(self, ending: Sequence[int], count: int) -> list[tuple[int, int]]:
        """Where texts go on behind what a sequence ends with.

        Args:
            ending: the last tokens of the sequence; more than ``MAX_MATCH`` are of no use.
            count: most places; of those with the same next token only the best is listed.

        Returns:
            (place, length of the match), the longest first and the most recent first among equals.
        """
        if not self._ring or len(ending) < SHORT:
            return []
        found: dict[int, tuple[int, int]] = {}
        if len(ending) >= LONG:
            place = self._long[_hash4(*ending[-LONG:]) & self._mask]
            self._collect(found, ending, place, self._older_long, LONG)
        if not found:
            place = self._short[_hash2(*ending[-SHORT:]) & self._mask]
            self._collect(found, ending, place, self._older_short, SHORT)
        return sorted(found.values(), key=lambda at: (-at[1], -at[0]))[:count]

    def token(self, place: int) -> int | None:
        """The token at a place, None if no text is there (any more)."""
        if not self._head - self.capacity <= place < self._head:
            return None
        token = self._ring[place & self._mask]
        return None if token == _GAP else token

    def _collect(
        self,
        found: dict[int, tuple[int, int]],
        ending: Sequence[int],
        place: int,
        older: array[int],
        least: int,
    ) -> None:
        """Put the best place for each next token into ``found``."""
        ring, mask = self._ring, self._mask
        oldest = self._head - self.capacity
        for _ in range(MAX_CANDIDATES):
            # A chain ends where the ring has been overwritten.
            if place <= 0 or place < oldest:
                return
            token = ring[place & mask]
            if token != _GAP:
                length, most = 0, min(len(ending), MAX_MATCH, place - oldest)
                while length < most and ring[(place - 1 - length) & mask] == ending[-1 - length]:
                    length += 1
                if length >= least and (token not in found or length > found[token][1]):
                    found[token] = (place, length)
            place = older[place & mask]


def _hash2(a: int, b: int) -> int:
    hashed = a * 0x9E3779B1 + b * 0x85EBCA77
    return hashed >> 11 ^ hashed


def _hash4(a: int, b: int, c: int, d: int) -> int:
    hashed = a * 0x9E3779B1 + b * 0x85EBCA77 + c * 0xC2B2AE3D + d * 0x27D4EB2F
    return hashed >> 11 ^ hashed
