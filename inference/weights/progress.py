"""How long work reports to whoever watches it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A sequence of steps; each begins, advances in bytes, and ends before the next begins."""

    def begin(self, label: str, total: int | None) -> None:
        """A step starts; ``total`` bytes are to do, None if that is not known."""

    def advance(self, count: int) -> None:
        """``count`` more bytes are done."""

    def end(self) -> None:
        """The step is over, whether it succeeded or not."""


class NoProgress:
    """Nobody watches."""

    def begin(self, label: str, total: int | None) -> None:
        """Ignored."""

    def advance(self, count: int) -> None:
        """Ignored."""

    def end(self) -> None:
        """Ignored."""
