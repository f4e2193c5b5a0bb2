"""The pool against a simple model of it: any sequence of requests, growth and closed documents."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.api import KvNumerics
from inference.cache.kv import KV_BUCKET, KvSlot, whole_buckets
from inference.cache.offload import Parking
from inference.cache.prefix import WORTHWHILE_PREFIX, SlotPool
from inference.errors import NotEnoughMemory
from inference.model.config import ModelConfig
from tests.tiny_models import make_config

CONFIG = ModelConfig.from_hf(make_config(num_hidden_layers=2, head_dim=2, num_key_value_heads=1))
CONTEXT = 4 * KV_BUCKET
# Prompts are beginnings of a few texts that share beginnings of several lengths.
TEXTS = [
    tuple(range(CONTEXT)),
    (*range(WORTHWHILE_PREFIX - 1), *range(5000, 5000 + CONTEXT)),
    (*range(600), *range(7000, 7000 + CONTEXT)),
    tuple(range(9000, 9000 + CONTEXT)),
]


class Memory:
    """Stands for a kind of memory: knows which buffers were made in it."""

    def __init__(self) -> None:
        self.made: list[torch.Tensor] = []

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        self.made.append(torch.zeros(shape, dtype=dtype))
        return self.made[-1]

    def holds(self, slot: KvSlot) -> bool:
        made = {id(buffer) for buffer in self.made}
        return all(id(buffer) in made for kind in slot.buffers for buffer in kind)


def make_pool(budget: int, parking: int, numerics: KvNumerics = "fp32") -> tuple[SlotPool, Memory]:
    bucket = KvSlot.bytes_for(CONFIG, KV_BUCKET, numerics)
    host = Memory()
    pool = SlotPool(
        budget * bucket,
        CONTEXT,
        bucket // KV_BUCKET,
        lambda capacity: KvSlot(CONFIG, capacity, torch.device("cpu"), numerics),
        Parking(parking * bucket, host.zeros) if parking else None,
    )
    return pool, host


def fill(slot: KvSlot, tokens: tuple[int, ...]) -> None:
    """What a forward does: rows that tell their token and layer."""
    for token in tokens:
        for layer in range(CONFIG.n_layers):
            row = torch.full((1, 1, 2), float(token + 1 + 10_000 * layer))
            slot.store(layer, slot.length, row, -row)
        slot.tokens.append(token)


def assert_rows_are_right(slot: KvSlot) -> None:
    expected = torch.tensor(slot.tokens, dtype=torch.float32) + 1
    for layer in range(CONFIG.n_layers):
        keys, values = slot.load(layer, slot.capacity)
        for found, right in ((keys, expected), (values, -expected)):
            found = found[0, : slot.length, 0]
            assert torch.allclose(found, right + right.sign() * 10_000 * layer, rtol=1e-5)


def assert_within_budgets(pool: SlotPool, host: Memory) -> None:
    usage = pool.usage()
    assert usage.used == sum(b.nbytes for s in pool.slots for kind in s.buffers for b in kind) <= usage.budget
    assert usage.parked <= usage.parking_budget
    assert not any(host.holds(slot) for slot in pool.slots)
    parked = pool._parking.slots if pool._parking is not None else []
    assert all(host.holds(slot) for slot in parked)
    assert usage.parked == sum(b.nbytes for s in parked for kind in s.buffers for b in kind)
    assert len({id(slot) for slot in (*pool.slots, *parked)}) == len(pool.slots) + len(parked)


requests = st.tuples(
    st.sampled_from("abcd"),
    st.integers(0, len(TEXTS) - 1),
    st.sampled_from([1, 3, 40, 500, 520, 640, 1100, 1300]),
    st.sampled_from([0, 1, 30, 512, 5000]),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([0, 0, 0, 0, 1]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(requests, st.sampled_from("abcd")), min_size=1, max_size=25),
    st.integers(4, 9),
    st.sampled_from([0, 1, 3, 8]),
    st.sampled_from(["fp32", "int8"]),
)
def test_any_sequence(
    steps: list[tuple[str, int, int, int, bool, int] | str], budget: int, parking: int, numerics: KvNumerics
) -> None:
    pool, host = make_pool(budget, parking, numerics)
    seen: dict[str, set[int]] = {}
    for step in steps:
        if isinstance(step, str):
            pool.drop_document(step)
            seen.pop(step, None)
            assert step not in pool.documents
        else:
            document, text, length, room, reuse, epoch = step
            prompt = TEXTS[text][:length]
            slot, cached = pool.acquire(document, prompt, room, reuse=reuse, epoch=epoch)
            assert slot in pool.slots and slot.document == document and slot.epoch == epoch
            assert slot.length == cached < len(prompt)
            assert slot.tokens == list(prompt[:cached])
            assert reuse or cached == 0
            assert slot.capacity >= min(length + room, CONTEXT)
            assert_rows_are_right(slot)
            fill(slot, prompt[cached:])
            seen.setdefault(document, set()).add(text)
        assert pool.documents <= set(seen)
        assert_within_budgets(pool, host)
    for slot in pool.slots:
        assert_rows_are_right(slot)


def test_what_leaves_the_device_comes_back() -> None:
    pool, host = make_pool(budget=4, parking=4)
    for document, first in zip("abcde", itertools.count(0, 1000), strict=False):
        fill(pool.acquire(document, (first, first + 1), reuse=True, epoch=0)[0], (first, first + 1))
    assert pool.usage().slots == 4 and pool.usage().parked_slots == 1
    assert pool.documents == set("abcde")
    slot, cached = pool.acquire("a", (0, 1, 2), 600, reuse=True, epoch=0)
    assert cached == 2 and slot.capacity == 2 * KV_BUCKET and not host.holds(slot)
    assert_rows_are_right(slot)
    assert {s.document for s in pool.slots} == {"a", "d", "e"}
    assert pool._parking is not None
    assert {s.document for s in pool._parking.slots} == {"b", "c"}
    # Parked until main memory is full too; then what was not used longest goes for good.
    for document, first in zip("fgh", itertools.count(9000, 1000), strict=False):
        fill(pool.acquire(document, (first,), reuse=True, epoch=0)[0], (first,))
    assert pool.documents == set("acdefgh")
    assert_within_budgets(pool, host)
    pool.drop_document("c")
    assert "c" not in pool.documents


def test_parked_rows_are_copied_for_another_document() -> None:
    pool, host = make_pool(budget=4, parking=4)
    text = TEXTS[0][:300]
    fill(pool.acquire("a", text, reuse=True, epoch=0)[0], text)
    fill(pool.acquire("b", (1,), 4 * KV_BUCKET, reuse=True, epoch=0)[0], (1,))
    assert pool.usage().parked_slots == 1
    slot, cached = pool.acquire("c", (*text, 7), reuse=True, epoch=0)
    assert cached == 300 and not host.holds(slot)
    assert_rows_are_right(slot)


def test_parking_takes_only_rows_in_use_and_knows_its_limits() -> None:
    pool, host = make_pool(budget=8, parking=1)
    fill(pool.acquire("a", (5, 6), 3 * KV_BUCKET, reuse=True, epoch=0)[0], (5, 6))
    slot = pool.slots[0]
    assert slot.capacity == 4 * KV_BUCKET
    parking = pool._parking
    assert parking is not None and parking.park(slot)
    assert slot.capacity == KV_BUCKET and host.holds(slot)
    big, _ = pool.acquire("b", TEXTS[3][:600], reuse=True, epoch=0)
    fill(big, TEXTS[3][:600])
    assert whole_buckets(big.length) == 2 * KV_BUCKET and not parking.park(big)
    other, _ = pool.acquire("c", (1,), reuse=True, epoch=0)
    assert not parking.park(other), "nothing in it"
    fill(other, (1,))
    assert not parking.park(other, keep=(slot,)) and slot in parking.slots
    assert parking.park(other) and parking.slots == [other]


def test_memory_that_cannot_be_pinned_costs_the_slot_only() -> None:
    def refuse(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        raise RuntimeError("CUDA error: out of memory")

    pool, _ = make_pool(budget=4, parking=4)
    pool._parking = Parking(1 << 30, refuse)
    fill(pool.acquire("a", (1, 2), 2000, reuse=True, epoch=0)[0], (1, 2))
    fill(pool.acquire("b", (3, 4), 2000, reuse=True, epoch=0)[0], (3, 4))
    assert pool.documents == {"b"} and pool.usage().parked_slots == 0


@pytest.mark.parametrize(
    ("cause", "error"),
    [(MemoryError(), NotEnoughMemory), (RuntimeError("unspecified launch failure"), RuntimeError)],
)
def test_a_slot_that_could_not_grow_is_dropped(
    cause: Exception, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, _ = make_pool(budget=4, parking=0)
    fill(pool.acquire("a", (1, 2), reuse=True, epoch=0)[0], (1, 2))
    make, left = KvSlot._zeros, 2

    def scarce(slot: KvSlot, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        nonlocal left
        left -= 1
        if left < 0:
            raise cause
        return make(slot, shape, dtype)

    monkeypatch.setattr(KvSlot, "_zeros", scarce)
    with pytest.raises(error):
        pool.acquire("a", (1, 2), 600, reuse=True, epoch=0)
    assert pool.slots == [] and pool.used == 0
