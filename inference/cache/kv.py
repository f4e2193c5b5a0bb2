"""Key/value buffers of one sequence, with a length pointer."""

from __future__ import annotations

from typing import Protocol

import torch

from inference.api import KvNumerics
from inference.cache import int8_rows
from inference.common_prefix import common_prefix
from inference.model.config import ModelConfig

# Attention always runs over a multiple of this many positions, so that its shape (and with it the
# order of its sums) depends on a row's own position and not on the block it came in.
KV_BUCKET = 512


def whole_buckets(positions: int) -> int:
    """The capacity of a slot that holds so many positions."""
    return -(-positions // KV_BUCKET) * KV_BUCKET


class Zeros(Protocol):
    """Makes a buffer somewhere; filled with zeros."""

    def __call__(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor: ...


class KvSlot:
    """Buffers for one token sequence, of whole buckets.

    Attributes:
        keys, values: of each layer [kv heads, capacity, head dim], in position order, rotated keys; float32
            or int8. Unused rows are finite (zero or left over), never NaN: masked out they contribute 0.
        key_scales, value_scales: float32 [kv heads, capacity, scales] of each layer, see `int8_rows`; none in
            float32.
        tokens: the ids whose keys and values are stored; its length is the length pointer.
        epoch: numerics epoch the contents belong to; another epoch means other bits.
    """

    def __init__(
        self, config: ModelConfig, capacity: int, device: torch.device, numerics: KvNumerics = "fp32"
    ) -> None:
        self.capacity = whole_buckets(capacity)
        self.numerics = numerics
        self._device = device
        self.tokens: list[int] = []
        self.document = ""
        self.last_used = 0
        self.epoch = 0
        rows = (config.n_kv_heads, self.capacity, config.head_dim)
        dtype = torch.int8 if numerics == "int8" else torch.float32
        scaled = config.n_layers if numerics == "int8" else 0
        self.keys = [self._zeros(rows, dtype) for _ in range(config.n_layers)]
        self.values = [self._zeros(rows, dtype) for _ in range(config.n_layers)]
        per_key = config.head_dim // int8_rows.key_group(config.head_dim)
        self.key_scales = [self._zeros((*rows[:2], per_key), torch.float32) for _ in range(scaled)]
        self.value_scales = [self._zeros((*rows[:2], 1), torch.float32) for _ in range(scaled)]

    def _zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=self._device)

    @property
    def buffers(self) -> tuple[list[torch.Tensor], ...]:
        """All that is kept, by kind and layer: [kv heads, capacity, ...] each."""
        return self.keys, self.values, self.key_scales, self.value_scales

    @property
    def nbytes(self) -> int:
        """Memory of the buffers."""
        return sum(len(kind) * kind[0].nbytes for kind in self.buffers if kind)

    @property
    def length(self) -> int:
        """Positions that hold valid keys and values."""
        return len(self.tokens)

    def common_prefix(self, prompt: tuple[int, ...]) -> int:
        """Number of leading tokens stored here that equal the prompt's."""
        return common_prefix(self.tokens, prompt)

    def truncate(self, length: int) -> None:
        """Forget everything from position ``length`` on. O(1): buffers are overwritten later."""
        assert 0 <= length <= len(self.tokens)
        del self.tokens[length:]

    def keep(self, start: int, path: list[int]) -> None:
        """Of the rows from ``start`` on keep those of one path, moved together.

        Args:
            path: indices of rows, relative to ``start``, ascending.
        """
        rows = [start + row for row in path]
        stop = start + len(path)
        if rows != list(range(start, stop)):
            for kind in self.buffers:
                for buffer in kind:
                    buffer[:, start:stop] = buffer[:, rows]
        self.tokens[start:] = [self.tokens[row] for row in rows]

    def resize(self, capacity: int, zeros: Zeros | None = None) -> None:
        """Move the contents to buffers of another size; no number changes.

        One buffer of one layer exists twice at a time, so hardly more memory is needed than for the result.
        If it raises, the slot is unusable unless the same call is repeated with success.

        Args:
            capacity: positions, at least ``length``.
            zeros: makes the buffers; None makes them where the slot was made first.
        """
        assert capacity >= self.length
        capacity, length, zeros = whole_buckets(capacity), self.length, zeros or self._zeros
        for kind in self.buffers:
            for layer, old in enumerate(kind):
                new = zeros((old.shape[0], capacity, *old.shape[2:]), old.dtype)
                new[:, :length].copy_(old[:, :length])
                kind[layer] = new
        self.capacity = capacity

    def copy_rows(self, source: KvSlot, stop: int) -> None:
        """Append the source's rows up to position ``stop``; both must begin with the same tokens."""
        start = self.length
        assert start <= stop <= min(source.length, self.capacity)
        for ours, theirs in zip(self.buffers, source.buffers, strict=True):
            for to, of in zip(ours, theirs, strict=True):
                to[:, start:stop].copy_(of[:, start:stop])
        self.tokens += source.tokens[start:stop]

    def store(self, layer: int, first: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Write new rows, float32 [rows, kv heads, head dim], to the positions first .."""
        stop = first + keys.shape[0]
        if self.numerics == "int8":
            dim = keys.shape[-1]
            keys, key_scales = int8_rows.quantize(keys, int8_rows.key_group(dim))
            values, value_scales = int8_rows.quantize(values, dim)
            self.key_scales[layer][:, first:stop] = key_scales.transpose(0, 1)
            self.value_scales[layer][:, first:stop] = value_scales.transpose(0, 1)
        self.keys[layer][:, first:stop] = keys.transpose(0, 1)
        self.values[layer][:, first:stop] = values.transpose(0, 1)

    def load(self, layer: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values in float32 [kv heads, ``positions`` or more, head dim], to be read only."""
        keys, values = self.keys[layer], self.values[layer]
        if self.numerics == "fp32":
            return keys, values
        return (
            int8_rows.dequantize(keys[:, :positions], self.key_scales[layer][:, :positions]),
            int8_rows.dequantize(values[:, :positions], self.value_scales[layer][:, :positions]),
        )

    @staticmethod
    def bytes_for(config: ModelConfig, capacity: int, numerics: KvNumerics) -> int:
        """Memory of one slot."""
        dim = config.head_dim
        row = 2 * dim + 4 * (dim // int8_rows.key_group(dim) + 1) if numerics == "int8" else 2 * 4 * dim
        return config.n_layers * config.n_kv_heads * row * whole_buckets(capacity)
