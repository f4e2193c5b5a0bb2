"""Which slot serves a prompt: longest common prefix first, least recently used for the rest."""

from __future__ import annotations

from collections.abc import Callable

from inference.cache.kv import KvSlot

# A slot of another document is only taken over for its prefix when that prefix is worth this many
# tokens of prefill; a shared opening special token or licence header is not.
WORTHWHILE_PREFIX = 128


class SlotPool:
    """At most ``limit`` slots, created when first needed.

    Not thread-safe: it belongs to the worker thread.
    """

    def __init__(self, limit: int, create: Callable[[], KvSlot]) -> None:
        assert limit >= 1
        self.limit = limit
        self._create = create
        self._clock = 0
        self.slots: list[KvSlot] = []

    def acquire(
        self, document: str, prompt: tuple[int, ...], *, reuse: bool, epoch: int
    ) -> tuple[KvSlot, int]:
        """The slot for this prompt and how many of its tokens are already in it.

        The slot is cut to that length. At least the last prompt token is always left to compute,
        because its logits are needed.
        """
        self._clock += 1
        slot = self._choose(document, prompt, reuse)
        if slot.epoch != epoch or not reuse:
            slot.truncate(0)
            slot.epoch = epoch
        shared = min(slot.common_prefix(prompt), len(prompt) - 1)
        slot.truncate(shared)
        slot.document = document
        slot.last_used = self._clock
        return slot, shared

    def _choose(self, document: str, prompt: tuple[int, ...], reuse: bool) -> KvSlot:
        own = [s for s in self.slots if s.document == document]
        if not reuse:
            # A measurement without the cache must not evict what others keep warm.
            if own:
                return own[0]
        elif self.slots:
            shared = [(slot.common_prefix(prompt), slot.document == document) for slot in self.slots]
            most, is_own = max(shared)
            if is_own or most >= WORTHWHILE_PREFIX:
                return self.slots[shared.index((most, is_own))]
            if own:
                return own[0]
        if len(self.slots) < self.limit:
            self.slots.append(self._create())
            return self.slots[-1]
        return min(self.slots, key=lambda s: s.last_used)

    @property
    def documents(self) -> set[str]:
        """Documents that something is kept of."""
        return {slot.document for slot in self.slots} - {""}

    def drop_document(self, document: str) -> None:
        """Forget a closed document's contents; its buffers are the first to be reused."""
        for slot in self.slots:
            if slot.document == document:
                slot.truncate(0)
                slot.document = ""
                slot.last_used = 0
