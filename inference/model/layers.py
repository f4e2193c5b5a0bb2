"""The layers of the Llama family in torch's operations."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inference.cache.kv import KvSlot
from inference.model.attention import attend, plan_rows
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm, silu_times
from inference.model.linear import Linear
from inference.model.rope import RopeTable
from inference.model.tree import TreeShape


@dataclass(frozen=True)
class Layer:
    """Weights of one transformer block; norms are float32 [hidden]."""

    attn_norm: torch.Tensor
    qkv: Linear
    q_norm: torch.Tensor | None  # [head dim]
    k_norm: torch.Tensor | None
    out: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear

    @property
    def linears(self) -> tuple[Linear, ...]:
        """All linear layers, in the order of their use."""
        return self.qkv, self.out, self.gate_up, self.down


class TorchStack:
    """Runs the layers on any device and in any numerics.

    Args:
        tiles: tile sizes proven to give equal bits, see `attention.plan_rows`.
    """

    def __init__(
        self, config: ModelConfig, layers: tuple[Layer, ...], rope: RopeTable, tiles: tuple[int, ...]
    ) -> None:
        self._config = config
        self._layers = layers
        self._rope = rope
        self._tiles = tiles

    def __call__(self, x: torch.Tensor, slot: KvSlot, tree: TreeShape | None = None) -> torch.Tensor:
        """Append rows to the slot's buffers, not to its tokens.

        Args:
            x: float32 [rows, hidden], the embeddings of the positions slot.length ..
            tree: None; this stack runs chains only.

        Returns:
            float32 [rows, hidden], before the final norm.
        """
        assert tree is None
        config, first, rows = self._config, slot.length, x.shape[0]
        group = config.n_heads // config.n_kv_heads
        groups = plan_rows(first, rows, group, self._tiles, x.device, torch.float32)
        cos = self._rope.cos[first : first + rows].unsqueeze(1)
        sin = self._rope.sin[first : first + rows].unsqueeze(1)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, rows)
            if config.rope_layers[index]:
                q, k = self._rope.rotate(q, cos, sin), self._rope.rotate(k, cos, sin)
            slot.store(index, first, k, v)
            keys, values = slot.load(index, groups[-1].bucket)
            mixed = layer.out(attend(q, keys, values, groups, config.attention_scale))
            x = self._add(x, mixed)
            gate_up = layer.gate_up(rms_norm(x, layer.mlp_norm, config.rms_eps))
            x = self._add(x, layer.down(silu_times(gate_up)))
        return x

    def _project(
        self, layer: Layer, x: torch.Tensor, rows: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        config = self._config
        heads, kv_heads, dim = config.n_heads, config.n_kv_heads, config.head_dim
        qkv = layer.qkv(rms_norm(x, layer.attn_norm, config.rms_eps)).view(rows, heads + 2 * kv_heads, dim)
        q, k, v = torch.split(qkv, [heads, kv_heads, kv_heads], dim=1)
        if layer.q_norm is not None and layer.k_norm is not None:
            q = rms_norm(q, layer.q_norm, config.rms_eps)
            k = rms_norm(k, layer.k_norm, config.rms_eps)
        return q, k, v

    def _add(self, x: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        if self._config.residual_multiplier != 1.0:
            update = update * self._config.residual_multiplier
        return x + update
