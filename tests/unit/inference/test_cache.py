"""Slots: what is kept, what is copied, who gives way, and that bits do not depend on any of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig, GenerationRequest, KvNumerics
from inference.cache.kv import KV_BUCKET, KvSlot
from inference.cache.prefix import SLOTS_PER_DOCUMENT, WORTHWHILE_PREFIX, WORTHWHILE_REST, SlotPool
from inference.errors import NotEnoughMemory
from inference.generation import Outcome
from inference.model.config import ModelConfig
from inference.runtime import Runtime, load_runtime
from tests.tiny_models import make_config, make_tiny

CONFIG = ModelConfig.from_hf(make_config())
BUCKET = KvSlot.bytes_for(CONFIG, KV_BUCKET, "fp32")
LONG = tuple(range(WORTHWHILE_PREFIX + 50))


def _slot(capacity: int, numerics: KvNumerics = "fp32") -> KvSlot:
    return KvSlot(CONFIG, capacity, torch.device("cpu"), numerics)


def _pool(buckets: int, context: int = 8 * KV_BUCKET) -> SlotPool:
    return SlotPool(buckets * BUCKET, context, BUCKET // KV_BUCKET, _slot)


def _use(pool: SlotPool, document: str, prompt: tuple[int, ...], epoch: int = 0, reuse: bool = True) -> int:
    slot, cached = pool.acquire(document, prompt, reuse=reuse, epoch=epoch)
    slot.tokens.extend(prompt[cached:])
    return cached


@pytest.mark.parametrize("numerics", ["fp32", "int8"])
def test_capacity_is_whole_buckets_and_counted(numerics: KvNumerics) -> None:
    slot = _slot(1000, numerics)
    assert slot.capacity == 2 * KV_BUCKET
    size = sum(buffer.nbytes for kind in slot.buffers for buffer in kind)
    assert size == slot.nbytes == KvSlot.bytes_for(CONFIG, 1000, numerics)
    if numerics == "fp32":
        assert size == CONFIG.kv_bytes_per_token * slot.capacity
    else:
        assert size < KvSlot.bytes_for(CONFIG, 1000, "fp32") / 3
    assert all(not buffer.any() for kind in slot.buffers for buffer in kind), "NaN times 0 is NaN"


def test_the_common_prefix_is_reused_but_one_token_is_left() -> None:
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


def test_slots_grow_by_need_within_the_budget() -> None:
    pool = _pool(4)
    slot, _ = pool.acquire("a", (1, 2, 3), 100, reuse=True, epoch=0)
    assert (slot.capacity, pool.used) == (KV_BUCKET, BUCKET)
    slot.tokens.extend((1, 2, 3))
    _use(pool, "b", (4, 5))
    assert pool.acquire("a", (1, 2, 3), 2 * KV_BUCKET, reuse=True, epoch=0) == (slot, 2)
    assert (slot.capacity, pool.used) == (3 * KV_BUCKET, 4 * BUCKET)
    # No room for more: the other one gives way.
    _, cached = pool.acquire("a", (1, 2), 3 * KV_BUCKET, reuse=True, epoch=0)
    assert (slot.capacity, pool.used, cached) == (4 * KV_BUCKET, 4 * BUCKET, 1)
    assert pool.slots == [slot] and pool.documents == {"a"}
    assert (pool.usage().used, pool.usage().budget, pool.usage().slots) == (4 * BUCKET, 4 * BUCKET, 1)


def test_more_than_the_budget_is_refused_with_the_reason() -> None:
    pool = _pool(2)
    with pytest.raises(NotEnoughMemory, match="the budget is"):
        pool.acquire("a", (1,), 3 * KV_BUCKET, reuse=True, epoch=0)
    assert _pool(2, context=600).acquire("a", (1,), 3 * KV_BUCKET, reuse=True, epoch=0)[0].capacity == 1024


def test_a_machine_with_less_memory_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, most = _pool(8), 3
    make = KvSlot._zeros

    def zeros(slot: KvSlot, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if pool.used > (most - 1) * BUCKET:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return make(slot, shape, dtype)

    monkeypatch.setattr(KvSlot, "_zeros", zeros)
    for document in "abcd":
        _use(pool, document, (ord(document), 1, 2))
    assert pool.documents == {"b", "c", "d"}
    with pytest.raises(NotEnoughMemory, match="no memory"):
        monkeypatch.setattr(KvSlot, "_zeros", lambda *_: torch.zeros(1 << 60))
        pool.acquire("e", (5,), reuse=True, epoch=0)
    assert pool.slots == []


def test_a_long_common_prefix_is_copied_a_short_one_is_not() -> None:
    pool = _pool(4)
    _use(pool, "a", LONG)
    first = pool.slots[0]
    for kind in first.buffers:
        for buffer in kind:
            buffer.normal_()
    assert _use(pool, "b", (*LONG[:5], 1000)) == 0
    assert _use(pool, "fork", (*LONG, 1000)) == len(LONG)
    copy = pool.slots[-1]
    for ours, theirs in zip(copy.buffers, first.buffers, strict=True):
        for to, of in zip(ours, theirs, strict=True):
            assert torch.equal(to[:, : len(LONG)], of[:, : len(LONG)])
    assert _use(pool, "a", LONG) == len(LONG) - 1, "the donor keeps its own"
    # A slot of its own with a part of it gets the rest.
    assert _use(pool, "b", (*LONG, 7)) == len(LONG)


def test_without_room_for_both_the_donor_is_taken_over() -> None:
    pool = _pool(1)
    _use(pool, "a", LONG)
    assert _use(pool, "renamed", (*LONG, 1000)) == len(LONG)
    assert pool.documents == {"renamed"} and pool.used == BUCKET


def test_some_places_of_a_document_are_kept_while_there_is_room() -> None:
    begins = tuple(range(10))
    places = [
        (*begins, *range(start, start + WORTHWHILE_REST + 40))
        for start in (1000, 2000, 3000, 4000)[:SLOTS_PER_DOCUMENT]
    ]
    pool = _pool(2 * SLOTS_PER_DOCUMENT)
    for place in places:
        _use(pool, "a", place)
    for place in places:
        assert _use(pool, "a", place) == len(place) - 1
    # Another place takes the room of the one that was not used for longest.
    _use(pool, "a", (7, *range(5000, 6000)))
    for place in places[1:]:
        assert _use(pool, "a", place) == len(place) - 1
    assert len(pool.slots) == SLOTS_PER_DOCUMENT
    # Others do not give way to it.
    pool = _pool(3)
    _use(pool, "other", (9, 9, 9))
    _use(pool, "a", places[0])
    _use(pool, "a", places[1])
    assert pool.documents == {"other", "a"} and len(pool.slots) == 2


def test_in_a_full_pool_a_new_place_takes_the_oldest_of_its_document() -> None:
    first, last, new = (
        (*range(10), *range(start, start + WORTHWHILE_REST + 40)) for start in (1000, 2000, 3000)
    )
    # Each place takes two buckets; with two of them and the stranger's the pool is full.
    pool = _pool(5)
    _use(pool, "other", (9, 9, 9))
    _use(pool, "a", first)
    _use(pool, "a", last)
    _use(pool, "a", new)
    assert pool.documents == {"other", "a"} and len(pool.slots) == 3
    assert _use(pool, "a", last) == len(last) - 1, "the best slot stayed"
    assert _use(pool, "a", new) == len(new) - 1
    assert _use(pool, "a", first) == 10


def test_another_epoch_has_other_bits() -> None:
    pool = _pool(2)
    _use(pool, "a", LONG, epoch=1)
    assert _use(pool, "b", LONG, epoch=2) == 0
    assert _use(pool, "a", LONG, epoch=2) == len(LONG) - 1, "copied from the one of this epoch"


def test_without_reuse_others_stay_warm() -> None:
    pool = _pool(2)
    _use(pool, "a", (1, 2, 3))
    assert _use(pool, "b", (1, 2, 3), reuse=False) == 0
    assert _use(pool, "a", (1, 2, 3)) == 2


def test_closing_a_document_forgets_it() -> None:
    pool = _pool(2)
    _use(pool, "a", LONG)
    pool.drop_document("a")
    assert pool.used == 0 and pool.documents == set()
    assert _use(pool, "a", LONG) == 0


# -- bits, with a model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("cache-home")))
        # Heads of 64: the compiled functions want them.
        yield make_tiny(
            tmp_path_factory.mktemp("model") / "tiny", gain=1.0, tie_word_embeddings=False, head_dim=64
        )


CONFIGURATIONS: list[dict[str, Any]] = [
    {"kernels": kernels, "kv": kv} for kernels in ("auto", "torch") for kv in ("fp32", "int8")
]


def _load(model: Path, **more: Any) -> Runtime:
    config = EngineConfig(model=str(model), context=2048, threads=1, **more)
    return load_runtime(config, lambda message, fraction: None)


def _ask(runtime: Runtime, document: str, prompt: tuple[int, ...], answer: int = 8, **more: Any) -> Outcome:
    request = GenerationRequest(prompt, document, max_new_tokens=answer, digest_logits=True, **more)
    return runtime.run(request, lambda chunk: None, lambda: None)


@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_growth_copies_and_eviction_leave_the_bits_alone(tiny: Path, options: dict[str, Any]) -> None:
    runtime = _load(tiny, kv_budget_mb=16, **options)
    bucket = KvSlot.bytes_for(runtime.config, KV_BUCKET, runtime.options.kv)
    runtime.slots.budget = 4 * bucket
    text = tuple(20 + (i * i) % 97 + i % 13 for i in range(2000))

    def fresh(prompt: tuple[int, ...], answer: int) -> Outcome:
        return _ask(alone, "", prompt, answer, draft="none", use_cache=False)

    alone = _load(tiny, **options)
    grown: set[int] = set()
    steps = [
        ("a", text[:300], 8),
        ("a", text[:500], 40),  # ends beyond the first bucket
        ("a", text[:900], 8),
        ("b", (*text[:700], 5, 6, 7), 8),  # copies 700 rows
        ("b", (*text[:700], 5, 6, 7, 8), 8),
        ("a", text[:1400], 60),  # b gives way
        ("c", text[:64], 8),
        ("b", text[100:400], 8),
        ("a", text[:1500], 8),
    ]
    cached, drafted, accepted = [], 0, 0
    for document, prompt, answer in steps:
        outcome = _ask(runtime, document, prompt, answer, draft="ngram")
        right = fresh(prompt, answer)
        assert outcome.token_ids == right.token_ids
        assert outcome.logits_sha256 == right.logits_sha256, (document, len(prompt))
        assert runtime.slots.used <= runtime.slots.budget
        grown |= {slot.capacity for slot in runtime.slots.slots}
        cached.append(outcome.cached_tokens)
        drafted, accepted = drafted + outcome.drafted, accepted + outcome.accepted
    # It means something only if all of this happened.
    assert 0 < accepted < drafted
    assert cached[:5] == [0, 300, 500, 700, 703] and cached[5] >= 900
    assert grown == {512, 1024, 1536} and runtime.slots.documents != {"a", "b", "c"}
    assert runtime.decoder.fused == alone.decoder.fused


@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_memory_is_taken_before_a_request_and_not_per_token(
    tiny: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = _load(tiny, **options)
    made = 0
    make = KvSlot._zeros

    def counted(slot: KvSlot, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        nonlocal made
        made += 1
        return make(slot, shape, dtype)

    monkeypatch.setattr(KvSlot, "_zeros", counted)
    acquired: list[int] = []
    acquire = runtime.slots.acquire

    def watched(*arguments: Any, **named: Any) -> Any:
        found = acquire(*arguments, **named)
        acquired.append(made)
        return found

    monkeypatch.setattr(runtime.slots, "acquire", watched)
    # Healed bytes and an answer that ends in the last row of a bucket.
    prompt = tuple(range(30, 280))
    outcome = _ask(runtime, "a", prompt, KV_BUCKET - len(prompt), heal="return", draft="ngram")
    assert len(outcome.token_ids) > KV_BUCKET - len(prompt)
    assert made == acquired[0] > 0
    _ask(runtime, "a", prompt, 20)
    assert made == acquired[1] == acquired[0]
