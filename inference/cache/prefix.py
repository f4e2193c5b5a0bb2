"""Which slot serves a prompt: longest common prefix first, least recently used for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from inference.cache.kv import KvSlot, whole_buckets
from inference.cache.offload import Parking
from inference.errors import NotEnoughMemory

# Rows are copied from another slot if they save reading this many tokens: a forward over fewer takes hardly
# longer than one over a single token, which must run anyway. Copying is next to nothing beside a forward.
WORTHWHILE_PREFIX = 32
# If continuing in a document's own slot would overwrite this many tokens, its text of before is kept beside
# it as long as nobody else needs the room: going back and forth between places reads none again. With the
# suffix first a place is also a block that the editor has closed behind the cursor, and the one around it.
WORTHWHILE_REST = 512
SLOTS_PER_DOCUMENT = 3

T = TypeVar("T")

MIB = 1 << 20


@dataclass(frozen=True)
class KvUsage:
    """Bytes and numbers of slots: on the device, and parked in main memory."""

    used: int
    budget: int
    slots: int
    parked: int = 0
    parking_budget: int = 0
    parked_slots: int = 0


class SlotPool:
    """Slots of all sizes that together stay within a budget.

    A slot grows in steps of `KV_BUCKET` before a request begins, never while it runs. Where there is no room,
    the slots that were not used longest give way: into ``parking`` if there is one, else for good.

    Not thread-safe: it belongs to the worker thread.

    Args:
        budget: bytes of all slots on the device.
        context: most positions of a slot.
        position_bytes: of one position of a slot.
        create: makes an empty slot for so many positions.
        parking: main memory for the slots that give way.
    """

    def __init__(
        self,
        budget: int,
        context: int,
        position_bytes: int,
        create: Callable[[int], KvSlot],
        parking: Parking | None = None,
    ) -> None:
        self.budget = budget
        self.context = context
        self._position_bytes = position_bytes
        self._create = create
        self._parking = parking
        self._clock = 0
        self.slots: list[KvSlot] = []

    def acquire(
        self, document: str, prompt: tuple[int, ...], room: int = 0, *, reuse: bool, epoch: int
    ) -> tuple[KvSlot, int]:
        """The slot for this prompt and how many of its tokens are already in it.

        The slot is cut to that length. At least the last prompt token is always left to compute,
        because its logits are needed.

        Args:
            room: positions behind the prompt that will be needed; the context bounds both together.

        Raises:
            NotEnoughMemory: the budget, or this machine, does not hold such a slot.
        """
        self._clock += 1
        capacity = whole_buckets(min(len(prompt) + room, self.context))
        if capacity * self._position_bytes > self.budget:
            raise NotEnoughMemory(
                f"{capacity} tokens take {capacity * self._position_bytes / MIB:.0f} MB of KV cache, "
                f"the budget is {self.budget / MIB:.0f} MB.",
                "Raise --kv-budget, or shorten the prompt or the answer.",
            )
        slots = [*self.slots, *self._parked]
        shared = {id(s): min(s.common_prefix(prompt), len(prompt) - 1) for s in slots if s.epoch == epoch}

        def reusable(slot: KvSlot) -> int:
            return shared.get(id(slot), 0) if reuse else 0

        def rank(slot: KvSlot) -> tuple[int, int]:
            return reusable(slot), slot.last_used

        own = sorted((slot for slot in slots if slot.document == document), key=rank)
        target = own[-1] if own else None
        donor = max(slots, key=rank, default=None)
        valid = target is not None and reuse and target.epoch == epoch
        if target is not None and valid and target.length - reusable(target) >= WORTHWHILE_REST:
            target = self._second(own, capacity)
        has = 0 if target is None else reusable(target)
        if donor is not None and (donor is target or reusable(donor) < has + WORTHWHILE_PREFIX):
            donor = None
        if target is not None:
            target.truncate(has)
        given = 0 if donor is None else reusable(donor)
        del slots, own  # what must give way is to be free while its successor is made
        slot = self._provide(target, donor, capacity)
        if slot is donor:
            cached = given
            slot.truncate(cached)
        else:
            cached = has if slot is target else 0
            slot.truncate(cached)
            if donor is not None:
                cached = given
                slot.copy_rows(donor, cached)
        slot.epoch = epoch
        slot.document = document
        slot.last_used = self._clock
        return slot, cached

    @property
    def documents(self) -> set[str]:
        """Documents that something is kept of."""
        return {slot.document for slot in (*self.slots, *self._parked)} - {""}

    def drop_document(self, document: str) -> None:
        """Forget a closed document; its memory is free for others."""
        for slot in (*self.slots, *self._parked):
            if slot.document == document:
                slot.truncate(0)  # whoever follows the slot is to forget it too
        self.slots = [slot for slot in self.slots if slot.document != document]
        if self._parking is not None:
            self._parking.slots = [slot for slot in self._parking.slots if slot.document != document]

    @property
    def used(self) -> int:
        """Bytes of the slots on the device."""
        return sum(slot.nbytes for slot in self.slots)

    def usage(self) -> KvUsage:
        """What is taken of the budgets."""
        parking = self._parking
        if parking is None:
            return KvUsage(self.used, self.budget, len(self.slots))
        return KvUsage(
            self.used, self.budget, len(self.slots), parking.used, parking.budget, len(parking.slots)
        )

    @property
    def _parked(self) -> list[KvSlot]:
        return [] if self._parking is None else self._parking.slots

    def _second(self, own: list[KvSlot], capacity: int) -> KvSlot | None:
        """Where to write if a document's best slot should stay: a new one (None), or its oldest other one.

        The best one after all, if there is no other one, and strangers would have to give way to a new one.
        """
        room = self.used + capacity * self._position_bytes <= self.budget
        if room and len(own) < SLOTS_PER_DOCUMENT:
            return None
        return min(own[:-1], key=lambda slot: slot.last_used, default=own[-1])

    def _provide(self, target: KvSlot | None, donor: KvSlot | None, capacity: int) -> KvSlot:
        """``target`` (None: a new slot), on the device and with so many positions at least.

        All others but the donor may give way; where both do not fit, it is the donor that is returned.
        """
        here = target is not None and target in self.slots
        taken = target.capacity if target is not None and here else 0
        capacity = max(capacity, taken, 0 if target is None else whole_buckets(target.length))
        keep = tuple(slot for slot in (target, donor) if slot is not None)
        if not self._make_room((capacity - taken) * self._position_bytes, keep):
            assert donor is not None, "the budget holds any one slot"
            if target is not None:
                self._remove(target)
            return self._provide(donor, None, capacity)
        if target is None:
            slot = self._allocate(lambda: self._create(capacity), keep)
            self.slots.append(slot)
            return slot
        if capacity > taken:
            try:
                self._allocate(lambda: target.resize(capacity), keep)
            except BaseException:
                self._remove(target)  # of two sizes now
                raise
        if not here:
            self._parked.remove(target)
            self.slots.append(target)
        return target

    def _make_room(self, size: int, keep: tuple[KvSlot, ...]) -> bool:
        """Let slots give way, all but those in ``keep``, until the budget has ``size`` bytes left."""
        while self.used + size > self.budget:
            oldest = self._oldest(keep)
            if oldest is None:
                return False
            self.slots.remove(oldest)
            if self._parking is not None:
                self._parking.park(oldest, keep)
            del oldest
        return True

    def _allocate(self, action: Callable[[], T], keep: tuple[KvSlot, ...]) -> T:
        """Do what takes memory; where the machine has less than the budget, at the cost of other slots.

        Raises:
            NotEnoughMemory
        """
        while True:
            try:
                return action()
            except (MemoryError, RuntimeError) as error:
                if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and "alloc" not in str(error):
                    raise
                oldest = self._oldest(keep)
                if oldest is None:
                    raise NotEnoughMemory(
                        "There is no memory for the KV cache of this request.",
                        "Close programs, or lower --kv-budget or --context.",
                    ) from error
                self.slots.remove(oldest)
                del oldest

    def _oldest(self, keep: tuple[KvSlot, ...]) -> KvSlot | None:
        idle = [slot for slot in self.slots if slot not in keep]
        return min(idle, key=lambda slot: slot.last_used, default=None)

    def _remove(self, slot: KvSlot) -> None:
        (self.slots if slot in self.slots else self._parked).remove(slot)
