"""Requests that wait for the model: first those that somebody waits for, and every client in its turn."""

from __future__ import annotations

from collections.abc import Iterator

from inference.pending import PendingGeneration


class FairQueue:
    """Not thread-safe: the engine's lock guards it. With one client and no background, a plain queue."""

    def __init__(self) -> None:
        self._waiting: list[PendingGeneration] = []
        self._turns = 0
        self._served: dict[str, int] = {}  # client -> its last turn, while any of them has requests waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PendingGeneration]:
        """In the order of their arrival."""
        return iter(self._waiting)

    def __contains__(self, pending: PendingGeneration) -> bool:
        return pending in self._waiting

    def append(self, pending: PendingGeneration) -> None:
        """Let it wait."""
        self._waiting.append(pending)

    def remove(self, pending: PendingGeneration) -> None:
        """It does not wait any more. Raises ValueError: it did not."""
        self._waiting.remove(pending)

    def clear(self) -> None:
        """None of them waits any more."""
        self._waiting.clear()

    def waiting_for(self, client: str) -> int:
        """Requests of one client."""
        return sum(pending.request.client == client for pending in self._waiting)

    def take(self) -> PendingGeneration:
        """The next one: of the client that was served longest ago, its oldest. One must be waiting."""
        asked = [pending for pending in self._waiting if not pending.request.background]
        chosen = min(asked or self._waiting, key=lambda pending: self._served.get(pending.request.client, 0))
        self._waiting.remove(chosen)
        self._turns += 1
        self._served[chosen.request.client] = self._turns
        if not self._waiting:
            self._served.clear()
        return chosen
