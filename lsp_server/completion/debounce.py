"""Waiting before work that the next key would throw away."""

from __future__ import annotations

import asyncio
import time

# A longer gap between two keys is a pause and says nothing about the pace.
_PAUSE_SECONDS = 1.0
# Keys before the pace counts as known.
_KNOWN_AFTER = 8
# Weight of the newest value in the running means.
_WEIGHT = 0.1


class Average:
    """Exponentially weighted mean and mean deviation."""

    def __init__(self, weight: float = _WEIGHT) -> None:
        self._weight = weight
        self.count = 0
        self.mean = 0.0
        self.deviation = 0.0

    def add(self, value: float) -> None:
        """Take one more value into account."""
        self.count += 1
        weight = max(self._weight, 1 / self.count)
        self.deviation += weight * (abs(value - self.mean) - self.deviation) if self.count > 1 else 0.0
        self.mean += weight * (value - self.mean)


class Debounce:
    """Delay of automatic requests, counted from the document's last edit.

    Clients wait by themselves before they ask (Neovim 200 ms, LSP4IJ 300 ms, VS Code not at all); only
    what they have not already waited is added. Once the user's pace is known, there is a wait only while
    the next key is likely to come before an answer could.
    """

    def __init__(self) -> None:
        self._edited: dict[str, float] = {}
        self._gaps = Average()
        self._answers = Average()

    def edited(self, uri: str) -> None:
        """Note an edit."""
        self.edited_at(uri, time.monotonic())

    def edited_at(self, uri: str, now: float) -> None:
        """Note an edit at a time of the monotonic clock."""
        before = self._edited.get(uri)
        if before is not None and now - before < _PAUSE_SECONDS:
            self._gaps.add(now - before)
        self._edited[uri] = now

    def answered(self, seconds: float) -> None:
        """Note how long the model took for an answer."""
        self._answers.add(seconds)

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._edited.pop(uri, None)

    async def wait(self, uri: str, milliseconds: float) -> None:
        """Return at the latest ``milliseconds`` after the last edit, at once if that is past."""
        left = self.left(uri, milliseconds, time.monotonic())
        if left > 0:
            await asyncio.sleep(left)

    def left(self, uri: str, milliseconds: float, now: float) -> float:
        """Seconds to wait, at most up to ``milliseconds`` after the last edit."""
        edited = self._edited.get(uri)
        if edited is None or milliseconds <= 0:
            return 0.0
        since = now - edited
        most = max(0.0, milliseconds / 1000 - since)
        gaps = self._gaps
        if gaps.count < _KNOWN_AFTER or not self._answers.count:
            return most
        if since + self._answers.mean <= gaps.mean - gaps.deviation:
            return 0.0  # the answer is there before the next key
        return min(most, max(0.0, gaps.mean + gaps.deviation - since))
