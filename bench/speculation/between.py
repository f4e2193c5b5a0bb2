"""The steps between the linear layers, run alone: what is left of a forward pass is Python's.

They are called as the layers call them, on buffers of their own with random contents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inference.model.attention import attend, plan_rows
from inference.model.config import ModelConfig
from inference.model.decoder import Decoder
from inference.model.elementwise import rms_norm, silu_times
from inference.model.fused import compiler
from inference.model.fused.library import Library
from inference.model.fused.stack import BLOCK

ATTENTION = "attention"
# Norms, additions, rotation, activation and quantisation.
ROW_STEPS = "row steps"


def steps_between(
    decoder: Decoder, tiles: tuple[int, ...], rows: int, context: int
) -> dict[str, Callable[[], None]]:
    """Attention and all other steps, each a function for all layers together.

    Args:
        tiles: see `attention.plan_rows`.
        rows: of the pass, behind ``context`` cached tokens.
    """
    if decoder.fused:
        return _compiled(decoder.config, compiler.load(), rows, context)
    return _torch(decoder.config, tiles, rows, context)


def _torch(
    config: ModelConfig, tiles: tuple[int, ...], rows: int, context: int
) -> dict[str, Callable[[], None]]:
    heads, kv_heads, dim = config.n_heads, config.n_kv_heads, config.head_dim
    cpu = torch.device("cpu")
    groups = plan_rows(context, rows, heads // kv_heads, tiles, cpu, torch.float32)
    length = max(group.bucket for group in groups)
    keys, values = torch.randn(2, kv_heads, length, dim)
    query, x = torch.randn(rows, heads, dim), torch.randn(rows, config.hidden_size)
    weight, gate_up = torch.ones(config.hidden_size), torch.randn(rows, 2 * config.intermediate_size)

    def attention() -> None:
        for _ in range(config.n_layers):
            attend(query, keys, values, groups, config.attention_scale)

    def row_steps() -> None:
        for _ in range(config.n_layers):
            for _ in range(2):
                x.add(rms_norm(x, weight, config.rms_eps))
            silu_times(gate_up)

    return {ATTENTION: attention, ROW_STEPS: row_steps}


def _compiled(
    config: ModelConfig, library: Library, rows: int, context: int
) -> dict[str, Callable[[], None]]:
    heads, kv_heads, dim = config.n_heads, config.n_kv_heads, config.head_dim
    hidden, inner, eps = config.hidden_size, config.intermediate_size, config.rms_eps
    capacity = context + rows
    keys, values = torch.randn(2, kv_heads, capacity, dim)
    query, mixed = torch.randn(rows, heads, dim), torch.empty(rows, heads * dim)
    x, update = torch.randn(rows, hidden), torch.randn(rows, hidden)
    scale, found = torch.ones(rows), torch.empty(rows)
    qkv, gate_up = torch.randn(rows, (heads + 2 * kv_heads) * dim), torch.randn(rows, 2 * inner)
    norm, cosine, sine = torch.ones(hidden), torch.ones(rows, dim), torch.zeros(rows, dim)
    narrow = torch.empty(rows, hidden, dtype=torch.uint8)
    wide = torch.empty(rows, inner, dtype=torch.uint8)
    attended = torch.empty(rows, heads * dim, dtype=torch.uint8)
    threads = torch.get_num_threads()
    block = max(1, min(BLOCK, rows * kv_heads // threads))
    size = library.attention_work(heads, kv_heads, dim, block, capacity)
    work = torch.empty(size * threads)

    def attention() -> None:
        for _ in range(config.n_layers):
            _call(
                library.attention, query, keys, values, rows, heads, kv_heads, dim, capacity, context,
                config.attention_scale, block, threads, work, size, mixed,
            )  # fmt: skip

    def row_steps() -> None:
        for _ in range(config.n_layers):
            for _ in range(2):
                _call(library.add_norm, x, update, scale, rows, hidden, norm, eps, narrow, found)
            _call(
                library.rotate, qkv, scale, None, rows, heads, kv_heads, dim, cosine, sine, query, keys,
                values, capacity, context,
            )  # fmt: skip
            _call(library.quantize, mixed, rows, heads * dim, attended, found)
            _call(library.silu, gate_up, scale, rows, inner, wide, found)

    return {ATTENTION: attention, ROW_STEPS: row_steps}


def _call(function: Any, *given: torch.Tensor | float | None) -> None:
    """With addresses in place of tensors; pointers at the end that may be NULL need not be given."""
    addresses = [each.data_ptr() if isinstance(each, torch.Tensor) else each for each in given]
    function(*addresses, *[None] * (len(function.argtypes) - len(given)))
