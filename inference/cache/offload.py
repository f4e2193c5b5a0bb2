"""Main memory behind a GPU's: slots that must leave the device wait here, least recently used first to go.

The swapping to the CPU of PagedAttention (arXiv 2309.06180), for whole slots: bringing one back moves some
megabytes over the bus, reading its prompt again computes it all. Untested on hardware.
"""

from __future__ import annotations

import torch

from inference.cache.kv import KvSlot, Zeros, whole_buckets


def pinned(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Page-locked main memory, which the device copies from and to at full speed. Needs CUDA."""
    return torch.zeros(shape, dtype=dtype, pin_memory=True)


class Parking:
    """Slots in main memory under a budget of their own; belongs to a `SlotPool`.

    Args:
        budget: bytes.
        zeros: makes the buffers in main memory; tests bring their own.
    """

    def __init__(self, budget: int, zeros: Zeros = pinned) -> None:
        self.budget = budget
        self._zeros = zeros
        self.slots: list[KvSlot] = []

    @property
    def used(self) -> int:
        """Bytes taken."""
        return sum(slot.nbytes for slot in self.slots)

    def park(self, slot: KvSlot, keep: tuple[KvSlot, ...] = ()) -> bool:
        """Move a slot of the device here, without its unused rows.

        Args:
            keep: slots that must not give way to it.

        Returns:
            Whether it is here; if not, its buffers are not to be used any more.
        """
        size = slot.nbytes // slot.capacity * whole_buckets(slot.length)
        staying = sum(other.nbytes for other in self.slots if other in keep)
        if not slot.length or size + staying > self.budget:
            return False
        while self.used + size > self.budget:
            self.slots.remove(min((s for s in self.slots if s not in keep), key=lambda s: s.last_used))
        try:
            slot.resize(slot.length, self._zeros)
        except (MemoryError, RuntimeError):  # the system lets less be pinned than was asked for
            return False
        self.slots.append(slot)
        return True
