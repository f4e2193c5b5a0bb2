"""Torch's steps between the linear layers, run alone: what is left of a forward pass is Python's.

They are called as the layers call them, on buffers of their own with random contents.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from inference.model.attention import attend, plan_rows
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm, silu_times

ATTENTION = "attention"
# Norms, additions, rotation, activation and quantisation.
ROW_STEPS = "row steps"


def steps_between(
    config: ModelConfig, tiles: tuple[int, ...], rows: int, context: int
) -> dict[str, Callable[[], None]]:
    """Attention and all other steps of torch's stack, each a function for all layers together.

    Args:
        tiles: see `attention.plan_rows`.
        rows: of the pass, behind ``context`` cached tokens.
    """
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
