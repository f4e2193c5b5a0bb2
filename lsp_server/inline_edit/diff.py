"""A line diff that grows with the answer: hunks are final when they are reported, so that nothing flickers.

A hunk is closed as soon as the answer has come back to the old lines beyond doubt. Which old line a new one
is aligned with may differ from what a diff of the whole texts would choose; applied, both give the same text.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

# Letters and digits that make a line unlikely to stand twice by chance.
_DISTINCTIVE = 3
# Tokens of old and new lines, multiplied, up to which differences within lines are looked for.
_MOST_COMPARED = 1_000_000
_TOKEN = re.compile(r"\w+|[^\S\n]+|[^\w\s]")


@dataclass(frozen=True)
class Hunk:
    """Old lines ``start`` to ``stop`` (exclusive, counted from the selection's first) become ``lines``."""

    start: int
    stop: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class OpenHunk:
    """The answer differs from old line ``start`` on; ``lines`` are new there, and only more can come."""

    start: int
    lines: tuple[str, ...]


class StreamingDiff:
    """Compares the old lines with those of the answer as they come."""

    def __init__(self, old: Sequence[str]) -> None:
        self._old = list(map(_key, old))
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(self._old):
            self._places.setdefault(line, []).append(number)
        self._counts: Counter[str] = Counter()  # of the lines of the answer so far
        self._at = 0  # old lines that are dealt with
        self._pending: list[str] = []  # new lines behind them
        self.hunks: list[Hunk] = []

    @property
    def kept(self) -> int:
        """Old lines that the answer has reached."""
        return self._at

    @property
    def differs(self) -> bool:
        """Whether a line has come that is not the next old one."""
        return bool(self.hunks or self._pending)

    @property
    def open(self) -> OpenHunk | None:
        """What is certainly new behind the last hunk, None if there is nothing yet."""
        lines = list(self._pending)
        # These may turn out to be old lines that the answer has come back to.
        while lines and self._next_place(lines[-1]) is not None:
            lines.pop()
        return OpenHunk(self._at, tuple(lines)) if lines else None

    def push(self, line: str) -> Hunk | None:
        """One more line of the answer; the hunk that it closes, if it closes one."""
        line = _key(line)
        self._counts[line] += 1
        if not self._pending and self._at < len(self._old) and self._old[self._at] == line:
            self._at += 1
            return None
        self._pending.append(line)
        found = self._come_back()
        if found is None:
            return None
        place, length = found
        return self._close(place, length)

    def finish(self) -> Hunk | None:
        """The answer has ended: what is left differs, but for the lines that both ends share."""
        old, new = self._old[self._at :], self._pending
        same = 0
        while same < min(len(old), len(new)) and old[-1 - same] == new[-1 - same]:
            same += 1
        if len(old) == len(new) == same:
            return None
        hunk = Hunk(self._at, len(self._old) - same, tuple(new[: len(new) - same]))
        self._at, self._pending = len(self._old), []
        self.hunks.append(hunk)
        return hunk

    def _come_back(self) -> tuple[int, int] | None:
        """The old line that the pending lines end at again, and how many of them are old lines."""
        last = self._pending[-1]
        for place in self._places.get(last, ()):
            if place < self._at:
                continue
            length = 1
            while (
                length < len(self._pending)
                and place - length >= self._at
                and self._old[place - length] == self._pending[-1 - length]
            ):
                length += 1
            words = sum(map(_words, self._old[place - length + 1 : place + 1]))
            unique = len(self._places[last]) == 1 and self._counts[last] == 1 and _words(last) >= _DISTINCTIVE
            if unique or (length > 1 and words >= _DISTINCTIVE):
                return place, length
        return None

    def _close(self, place: int, length: int) -> Hunk | None:
        start, stop = self._at, place - length + 1
        lines = tuple(self._pending[: len(self._pending) - length])
        self._at, self._pending = place + 1, []
        if start == stop and not lines:
            return None
        hunk = Hunk(start, stop, lines)
        self.hunks.append(hunk)
        return hunk

    def _next_place(self, line: str) -> int | None:
        return next((place for place in self._places.get(line, ()) if place >= self._at), None)


def apply(old: Sequence[str], hunks: Sequence[Hunk]) -> list[str]:
    """The lines after all hunks, which are in order and do not overlap."""
    lines: list[str] = []
    at = 0
    for hunk in hunks:
        lines += [*old[at : hunk.start], *hunk.lines]
        at = hunk.stop
    return [*lines, *old[at:]]


@dataclass(frozen=True)
class Span:
    """Characters ``start`` to ``stop`` of line ``line`` of a hunk's new lines that its old lines lack."""

    line: int
    start: int
    stop: int


def changed_spans(old: Sequence[str], new: Sequence[str]) -> list[Span]:
    """Where the new lines of a hunk differ from its old ones, by tokens; for display only.

    In a hunk that is too large to compare these are the whole lines.
    """
    before = _tokens(old)
    after = _tokens(new)
    if len(before) * len(after) > _MOST_COMPARED:
        return [Span(number, 0, len(line)) for number, line in enumerate(new) if line]
    matcher = difflib.SequenceMatcher(None, [t[2] for t in before], [t[2] for t in after], autojunk=False)
    spans: list[Span] = []
    for kind, _, _, first, stop in matcher.get_opcodes():
        if kind not in ("replace", "insert"):
            continue
        for line, column, token in after[first:stop]:
            end = column + len(token)
            if spans and spans[-1].line == line and spans[-1].stop == column:
                spans[-1] = Span(line, spans[-1].start, end)
            else:
                spans.append(Span(line, column, end))
    return spans


def _tokens(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Line, column and text of each token."""
    return [(n, m.start(), m.group()) for n, line in enumerate(lines) for m in _TOKEN.finditer(line)]


def _key(line: str) -> str:
    """Blanks on an empty line are no difference: models leave them out."""
    return line if line.strip() else ""


def _words(line: str) -> int:
    return sum(map(str.isalnum, line))
