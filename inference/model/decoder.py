"""The forward pass of the Llama family over a KV slot."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inference.cache.kv import KvSlot
from inference.model.attention import attend, plan_rows
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm, silu_times
from inference.model.linear import Linear
from inference.model.rope import RopeTable


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


@dataclass(frozen=True)
class Weights:
    """A whole decoder. ``embed`` [vocab, hidden] may be of any floating type."""

    embed: torch.Tensor
    layers: tuple[Layer, ...]
    final_norm: torch.Tensor
    head: Linear

    @property
    def private_bytes(self) -> int:
        """Packed copies; tensors used from the mapped file are not counted."""
        linears = [m for layer in self.layers for m in (layer.qkv, layer.out, layer.gate_up, layer.down)]
        return sum(m.private_bytes for m in [*linears, self.head])


class Decoder:
    """Runs blocks of tokens through the model and leaves their keys and values in a slot.

    Args:
        max_positions: length of the rotary table; slots must not be longer.
        attention_tiles: tile sizes proven to give equal bits, see `attention.plan_rows`.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        max_positions: int,
        device: torch.device,
        attention_tiles: tuple[int, ...] = (1,),
    ) -> None:
        self.config = config
        self.weights = weights
        self.device = device
        self.attention_tiles = attention_tiles
        self._rope = RopeTable(config, max_positions, device)
        self.max_positions = max_positions

    def new_slot(self, capacity: int) -> KvSlot:
        """Empty float32 buffers for ``capacity`` tokens."""
        return KvSlot(self.config, capacity, self.device, torch.float32)

    def forward(self, tokens: list[int], slot: KvSlot, logits_from: int | None = 0) -> torch.Tensor | None:
        """Append tokens to the slot.

        Args:
            tokens: ids for the positions slot.length ..; the slot must have room for them.
            logits_from: first row of the block whose logits are wanted; None for no logits.
                Only these rows pass through the output head.

        Returns:
            float32 [len(tokens) - logits_from, vocab], or None.
        """
        config, first, rows = self.config, slot.length, len(tokens)
        assert 0 < rows <= slot.capacity - first, (rows, first, slot.capacity)
        ids = torch.tensor(tokens, device=self.device)
        x = self.weights.embed[ids].float()
        if config.embedding_multiplier != 1.0:
            x = x * config.embedding_multiplier
        groups = plan_rows(
            first,
            rows,
            config.n_heads // config.n_kv_heads,
            self.attention_tiles,
            self.device,
            slot.keys.dtype,
        )
        cos = self._rope.cos[first : first + rows].unsqueeze(1)
        sin = self._rope.sin[first : first + rows].unsqueeze(1)
        for index, layer in enumerate(self.weights.layers):
            q, k, v = self._project(layer, x, rows)
            if config.rope_layers[index]:
                q, k = self._rope.rotate(q, cos, sin), self._rope.rotate(k, cos, sin)
            keys, values = slot.keys[index], slot.values[index]
            keys[:, first : first + rows] = k.transpose(0, 1)
            values[:, first : first + rows] = v.transpose(0, 1)
            mixed = layer.out(attend(q, keys, values, groups, config.attention_scale))
            x = self._add(x, mixed)
            gate_up = layer.gate_up(rms_norm(x, layer.mlp_norm, config.rms_eps))
            x = self._add(x, layer.down(silu_times(gate_up)))
        slot.tokens.extend(tokens)
        if logits_from is None:
            return None
        x = rms_norm(x[logits_from:], self.weights.final_norm, config.rms_eps)
        logits = self.weights.head(x)
        return logits if config.logits_scaling == 1.0 else logits / config.logits_scaling

    def _project(
        self, layer: Layer, x: torch.Tensor, rows: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        config = self.config
        heads, kv_heads, dim = config.n_heads, config.n_kv_heads, config.head_dim
        qkv = layer.qkv(rms_norm(x, layer.attn_norm, config.rms_eps)).view(rows, heads + 2 * kv_heads, dim)
        q, k, v = torch.split(qkv, [heads, kv_heads, kv_heads], dim=1)
        if layer.q_norm is not None and layer.k_norm is not None:
            q = rms_norm(q, layer.q_norm, config.rms_eps)
            k = rms_norm(k, layer.k_norm, config.rms_eps)
        return q, k, v

    def _add(self, x: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        if self.config.residual_multiplier != 1.0:
            update = update * self.config.residual_multiplier
        return x + update
