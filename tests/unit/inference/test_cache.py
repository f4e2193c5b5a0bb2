"""Slots: what is kept, what is dropped, who gives way."""

from __future__ import annotations

import torch

from inference.cache.kv import KV_BUCKET, KvSlot
from inference.cache.prefix import WORTHWHILE_PREFIX, SlotPool
from inference.model.config import ModelConfig
from tests.tiny_models import make_config

CONFIG = ModelConfig.from_hf(make_config())
LONG = tuple(range(WORTHWHILE_PREFIX + 50))


def _pool(limit: int) -> SlotPool:
    return SlotPool(limit, lambda: KvSlot(CONFIG, 1000, torch.device("cpu"), torch.float32))


def _use(pool: SlotPool, document: str, prompt: tuple[int, ...], epoch: int = 0, reuse: bool = True) -> int:
    slot, cached = pool.acquire(document, prompt, reuse=reuse, epoch=epoch)
    slot.tokens.extend(prompt[cached:])
    return cached


def test_capacity_is_whole_buckets_and_counted() -> None:
    slot = KvSlot(CONFIG, 1000, torch.device("cpu"), torch.float32)
    assert slot.capacity == 2 * KV_BUCKET
    size = slot.keys.nbytes + slot.values.nbytes
    assert size == KvSlot.bytes_for(CONFIG, 1000, torch.float32)
    assert size == CONFIG.kv_bytes_per_token * slot.capacity


def test_the_last_prompt_token_is_always_computed() -> None:
    pool = _pool(1)
    assert _use(pool, "a", (1, 2, 3)) == 0
    assert _use(pool, "a", (1, 2, 3)) == 2
    assert _use(pool, "a", (1, 2, 9, 9)) == 2
    assert _use(pool, "a", (5,)) == 0


def test_documents_keep_their_slots() -> None:
    pool = _pool(2)
    _use(pool, "a", (1, 2, 3, 4))
    _use(pool, "b", (5, 6, 7, 8))
    assert _use(pool, "a", (1, 2, 3, 9)) == 3
    assert _use(pool, "b", (5, 6, 7, 9)) == 3
    assert len(pool.slots) == 2


def test_least_recently_used_gives_way() -> None:
    pool = _pool(2)
    _use(pool, "a", (1, 2, 3))
    _use(pool, "b", (4, 5, 6))
    _use(pool, "a", (1, 2, 3))
    _use(pool, "c", (7, 8, 9))
    assert _use(pool, "a", (1, 2, 3)) == 2
    assert _use(pool, "b", (4, 5, 6)) == 0


def test_a_long_common_prefix_is_shared_a_short_one_is_not() -> None:
    pool = _pool(2)
    _use(pool, "a", LONG)
    assert _use(pool, "b", (*LONG[:5], 1000)) == 0
    assert _use(pool, "renamed", (*LONG, 1000)) == len(LONG)


def test_another_epoch_has_other_bits() -> None:
    pool = _pool(1)
    _use(pool, "a", (1, 2, 3), epoch=1)
    assert _use(pool, "a", (1, 2, 3), epoch=2) == 0


def test_without_reuse_others_stay_warm() -> None:
    pool = _pool(2)
    _use(pool, "a", (1, 2, 3))
    assert _use(pool, "b", (1, 2, 3), reuse=False) == 0
    assert _use(pool, "a", (1, 2, 3)) == 2


def test_closing_a_document_forgets_it() -> None:
    pool = _pool(2)
    _use(pool, "a", LONG)
    pool.drop_document("a")
    assert _use(pool, "a", LONG) == 0
    assert len(pool.slots) <= 2
