"""Keys and values in int8: a row's numbers are its own, both stacks agree, and the loss is small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig, GenerationRequest
from inference.cache import int8_rows
from inference.cache.kv import KV_BUCKET, KvSlot
from inference.model.fused.check import fault
from inference.model.fused.library import Library
from inference.runtime import Runtime, load_runtime
from tests.tiny_models import make_tiny
from tests.unit.inference.test_fused import library, needs_compiler

__all__ = ["library"]  # a fixture

BLOCKS = ((0, 1), (1, 17), (17, 145), (145, 500), (500, 600))


@pytest.fixture
def wide_model(tmp_path: Path, tiny_home: Path) -> Path:
    directory = tmp_path / "wide"
    make_tiny(directory, gain=1.0, tie_word_embeddings=False, head_dim=64)  # drafts come true in it
    return directory


def _load(model: Path, **more: Any) -> Runtime:
    return load_runtime(
        EngineConfig(model=str(model), context=1024, threads=2, **more), lambda message, fraction: None
    )


def test_rows_come_back_within_half_a_step() -> None:
    x = torch.randn(7, 3, 64) * torch.tensor([1e-3, 1.0, 50.0])[:, None]
    x[0, 0] = 0.0
    for group in (64, 16):
        q, scales = int8_rows.quantize(x, group)
        assert q.dtype is torch.int8 and scales.shape == (7, 3, 64 // group)
        back = int8_rows.dequantize(q, scales)
        assert bool(((back - x).abs() <= scales.repeat_interleave(group, -1) * 0.5001).all())
        assert not back[0, 0].any()
        alone, scale = int8_rows.quantize(x[4:5].clone(), group)
        assert torch.equal(alone[0], q[4]) and torch.equal(scale[0], scales[4])


def test_a_large_channel_of_a_key_does_not_drown_the_others() -> None:
    keys = torch.randn(5, 2, 64)
    keys[..., 63] = 150.0
    for group in (16, 64):
        back = int8_rows.dequantize(*int8_rows.quantize(keys, group))
        loss = (back - keys)[..., :48].norm() / keys[..., :48].norm()
        assert (loss < 0.01) == (group == int8_rows.KEY_GROUP)


@needs_compiler
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize(("heads", "kv_heads"), [(14, 2), (6, 1)])
def test_attention_has_the_bits_of_the_dequantised_numbers(
    library: Library, heads: int, kv_heads: int, dim: int
) -> None:
    rows, first, capacity = 21, 503, 1024
    query = torch.randn(rows, heads, dim)
    keys, key_scales = int8_rows.quantize(torch.randn(kv_heads, capacity, dim), int8_rows.KEY_GROUP)
    values, value_scales = int8_rows.quantize(torch.randn(kv_heads, capacity, dim), dim)

    def run(
        start: int, stop: int, keys: torch.Tensor, values: torch.Tensor, *scales: torch.Tensor
    ) -> torch.Tensor:
        size = library.attention_work(heads, kv_heads, dim, 8, first + stop)
        work, out = torch.empty(size), torch.empty(stop - start, heads * dim)
        part = query[start:stop].contiguous()
        addresses = [scale.data_ptr() for scale in scales] or [None, None]
        library.attention(
            part.data_ptr(), keys.data_ptr(), values.data_ptr(), stop - start, heads, kv_heads, dim,
            capacity, first + start, dim**-0.5, 8, work.data_ptr(), size, out.data_ptr(), None, None,
            *addresses,
        )  # fmt: skip
        return out

    whole = run(0, rows, keys, values, key_scales, value_scales)
    plain = run(0, rows, int8_rows.dequantize(keys, key_scales), int8_rows.dequantize(values, value_scales))
    assert torch.equal(whole, plain)
    for start, stop in ((0, 1), (1, 4), (4, 20), (20, 21)):
        assert torch.equal(run(start, stop, keys, values, key_scales, value_scales), whole[start:stop])


@needs_compiler
def test_rotation_writes_the_rows_that_torch_would(library: Library) -> None:
    rows, heads, kv_heads, dim, capacity, first = 9, 4, 2, 64, 512, 100
    y, y_scale = torch.randn(rows, (heads + 2 * kv_heads) * dim), torch.rand(rows) + 0.5
    bias, cosine, sine = (
        torch.randn((heads + 2 * kv_heads) * dim),
        torch.randn(rows, dim),
        torch.randn(rows, dim),
    )
    query = torch.empty(2, rows, heads, dim)
    keys, values = torch.zeros(2, kv_heads, capacity, dim)
    small_keys, small_values = torch.zeros(2, kv_heads, capacity, dim, dtype=torch.int8)
    key_scales = torch.zeros(kv_heads, capacity, dim // int8_rows.KEY_GROUP)
    value_scales = torch.zeros(kv_heads, capacity, 1)

    def run(to: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *scales: int | None) -> None:
        library.rotate(
            y.data_ptr(), y_scale.data_ptr(), bias.data_ptr(), rows, heads, kv_heads, dim, cosine.data_ptr(),
            sine.data_ptr(), None, to.data_ptr(), keys.data_ptr(), values.data_ptr(), capacity, first,
            *scales,
        )  # fmt: skip

    run(query[0], keys, values, None, None)
    run(query[1], small_keys, small_values, key_scales.data_ptr(), value_scales.data_ptr())
    assert torch.equal(query[0], query[1])
    written = slice(first, first + rows)
    for plain, small, scales, group in (
        (keys, small_keys, key_scales, int8_rows.KEY_GROUP),
        (values, small_values, value_scales, dim),
    ):
        right, right_scales = int8_rows.quantize(plain[:, written], group)
        assert torch.equal(small[:, written], right) and torch.equal(scales[:, written], right_scales)
        assert not small[:, : written.start].any() and not small[:, written.stop :].any()


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_blocks_drafts_and_capacity_leave_the_bits_alone(wide_model: Path, kernels: Any) -> None:
    loaded = _load(wide_model, kernels=kernels, kv="int8")
    decoder = loaded.decoder
    tokens = [(7 * i) % 400 for i in range(600)]
    with torch.inference_mode():
        whole = decoder.forward(tokens, decoder.new_slot(1024))
        slot, parts = decoder.new_slot(KV_BUCKET), []
        for start, stop in BLOCKS:
            if stop > slot.capacity:
                slot.resize(stop)
            parts.append(decoder.forward(tokens[start:stop], slot))
    assert slot.keys[0].dtype is torch.int8
    assert whole is not None
    assert torch.equal(torch.cat([part for part in parts if part is not None]), whole)

    request = GenerationRequest(tuple(range(20, 60)) * 4, max_new_tokens=40, digest_logits=True)

    def run(draft: Any, use_cache: bool) -> tuple[str, int, int]:
        done = loaded.run(
            replace(request, draft=draft, use_cache=use_cache), lambda chunk: None, lambda: None
        )
        return done.logits_sha256, done.drafted, done.cached_tokens

    plain = run("none", False)
    drafted = run("ngram", True), run("ngram", True)
    assert {digest for digest, _, _ in (plain, *drafted)} == {plain[0]}
    assert drafted[0][1] > 0 and drafted[1][2] == len(request.prompt) - 1


def test_both_stacks_agree_and_the_loss_is_small(wide_model: Path) -> None:
    tokens = [(7 * i) % 400 for i in range(300)]
    logits: dict[tuple[str, str], torch.Tensor] = {}
    for kernels in ("auto", "torch"):
        for kv in ("fp32", "int8"):
            decoder = _load(wide_model, kernels=kernels, kv=kv).decoder
            with torch.inference_mode():
                found = decoder.forward(tokens, decoder.new_slot(512))
            assert found is not None
            logits[kernels, kv] = found
    for kernels in ("auto", "torch"):
        small, full = logits[kernels, "int8"], logits[kernels, "fp32"]
        assert not torch.equal(small, full)
        assert (small - full).norm() < 0.05 * full.norm()
    assert (logits["auto", "int8"] - logits["torch", "int8"]).norm() < 0.05 * logits["torch", "int8"].norm()


@needs_compiler
def test_the_check_at_start_up_looks_at_int8(wide_model: Path, library: Library) -> None:
    decoder = _load(wide_model, kv="int8").decoder
    wrong: list[int] = []

    def broken(model: Any, block: Any, threads: int) -> None:
        library.layers(model, block, threads)
        facts = block._obj
        if not facts.value_scales:
            return
        wrong.append(1)
        other, one = torch.full((1, 64), 1000.0), torch.ones(1)
        library.add_norm(facts.x, other.data_ptr(), one.data_ptr(), 1, 64, None, 0.0, None, None)

    odd = Library.__new__(Library)
    odd.__dict__.update(library.__dict__)
    odd.layers = broken
    layers, config = decoder.weights.layers, decoder.config
    assert fault(config, layers, library, (1,), "int8") is None
    assert "wrong values" in (fault(config, layers, odd, (1,), "int8") or "")
    assert wrong and fault(config, layers, odd, (1,), "fp32") is None


def test_a_slot_copies_and_grows_with_its_scales(wide_model: Path) -> None:
    decoder = _load(wide_model, kv="int8").decoder
    tokens = [(7 * i) % 400 for i in range(600)]
    with torch.inference_mode():
        source, copy = decoder.new_slot(1024), decoder.new_slot(512)
        decoder.forward(tokens[:500], source, None)
        decoder.forward(tokens[:100], copy, None)
        copy.copy_rows(source, 450)
        copy.resize(1024)
        whole = decoder.forward(tokens, decoder.new_slot(1024), 450)
        rest = decoder.forward(tokens[450:], copy)
    assert isinstance(copy, KvSlot) and copy.tokens == tokens
    assert whole is not None and rest is not None and torch.equal(rest, whole)
