"""A block of rows as tensors of fixed shape: what a recorded forward reads."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inference.model.attention import RowGroup, attend
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm, silu_times
from inference.model.layers import Layer, TorchStack
from inference.model.rope import RopeTable


@dataclass(frozen=True)
class Rows:
    """New rows of a sequence or of a tree of candidates.

    Attributes:
        positions: int64 [rows], in the text: what the rotary embedding sees.
        places: int64 [rows], in the cache: where keys and values go. All different.
        visible: bool [rows, bucket], the places each row attends to, its own among them.
    """

    positions: torch.Tensor
    places: torch.Tensor
    visible: torch.Tensor


def causal_rows(first: int, rows: int, bucket: int, device: torch.device) -> Rows:
    """Consecutive tokens: each sees all before it and itself."""
    places = torch.arange(first, first + rows, device=device)
    visible = torch.arange(bucket, device=device)[None, :] <= places[:, None]
    return Rows(places, places, visible)


class Buffers:
    """Inputs and output at fixed addresses, for one width and bucket.

    Rows beyond those of a block repeat its last row and write the same bits to the same place, so they leave
    nothing behind wherever the block ends.
    """

    def __init__(self, config: ModelConfig, width: int, bucket: int, device: torch.device) -> None:
        self.width, self.bucket = width, bucket
        self._group = config.n_heads // config.n_kv_heads
        self.x = torch.zeros(width, config.hidden_size, device=device)
        self.out = torch.zeros(width, config.hidden_size, device=device)
        self.positions = torch.zeros(width, dtype=torch.int64, device=device)
        self.places = torch.zeros(width, dtype=torch.int64, device=device)
        # Which row's keys and values each row writes: the last real one's for those behind it.
        self.source = torch.zeros(width, dtype=torch.int64, device=device)
        self.mask = torch.zeros(1, 1, width * self._group, bucket, device=device)

    def fill(self, x: torch.Tensor, rows: Rows) -> None:
        """Copy a block of 1 .. width rows in; ``x`` float32 [rows, hidden]."""
        count = x.shape[0]
        source = torch.arange(self.width, device=x.device).clamp_(max=count - 1)
        self.source.copy_(source)
        self.x.copy_(x[source])
        self.positions.copy_(rows.positions[source])
        self.places.copy_(rows.places[source])
        visible = rows.visible[source].repeat_interleave(self._group, dim=0)
        self.mask.zero_().masked_fill_(~visible, float("-inf"))


class BlockLayers(TorchStack):
    """All layers over `Buffers`: reads and writes of fixed addresses, no number that the CPU must know."""

    def __init__(self, config: ModelConfig, layers: tuple[Layer, ...], rope: RopeTable) -> None:
        super().__init__(config, layers, rope, (1,))

    def run(self, buffers: Buffers, keys: list[torch.Tensor], values: list[torch.Tensor]) -> None:
        """One forward from ``buffers.x`` to ``buffers.out``.

        Args:
            keys, values: of each layer, float [kv heads, capacity, head dim]; new rows are written into them.
        """
        config, x = self._config, buffers.x
        group = RowGroup(0, buffers.width, buffers.width, buffers.bucket, buffers.mask)
        cos = self._rope.cos.index_select(0, buffers.positions).unsqueeze(1)
        sin = self._rope.sin.index_select(0, buffers.positions).unsqueeze(1)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, buffers.width)
            if config.rope_layers[index]:
                q, k = self._rope.rotate(q, cos, sin), self._rope.rotate(k, cos, sin)
            for cache, new in ((keys[index], k), (values[index], v)):
                written = new.index_select(0, buffers.source).transpose(0, 1).to(cache.dtype)
                cache.index_copy_(1, buffers.places, written)
            mixed = attend(q, keys[index], values[index], [group], config.attention_scale)
            x = self._add(x, layer.out(mixed))
            gate_up = layer.gate_up(rms_norm(x, layer.mlp_norm, config.rms_eps))
            x = self._add(x, layer.down(silu_times(gate_up)))
        buffers.out.copy_(x)
