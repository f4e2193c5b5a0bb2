"""Key/value buffers of one sequence, with a length pointer."""

from __future__ import annotations

import torch

from inference.model.config import ModelConfig

# Attention always runs over a multiple of this many positions, so that its shape (and with it the
# order of its sums) depends on a row's own position and not on the block it came in.
KV_BUCKET = 512


class KvSlot:
    """Fixed buffers for one token sequence.

    Attributes:
        keys, values: [layers, kv heads, capacity, head dim], in position order, rotated keys.
            Unused rows are finite (zero or left over), never NaN: masked out they contribute 0.
        tokens: the ids whose keys and values are stored; its length is the length pointer.
        epoch: numerics epoch the contents belong to; another epoch means other bits.
    """

    def __init__(self, config: ModelConfig, capacity: int, device: torch.device, dtype: torch.dtype) -> None:
        self.capacity = -(-capacity // KV_BUCKET) * KV_BUCKET
        shape = (config.n_layers, config.n_kv_heads, self.capacity, config.head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.tokens: list[int] = []
        self.document = ""
        self.last_used = 0
        self.epoch = 0

    @property
    def length(self) -> int:
        """Positions that hold valid keys and values."""
        return len(self.tokens)

    def common_prefix(self, prompt: tuple[int, ...]) -> int:
        """Number of leading tokens stored here that equal the prompt's."""
        limit = min(len(self.tokens), len(prompt))
        for i in range(limit):
            if self.tokens[i] != prompt[i]:
                return i
        return limit

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
            self.keys[:, :, start:stop] = self.keys[:, :, rows]
            self.values[:, :, start:stop] = self.values[:, :, rows]
        self.tokens[start:] = [self.tokens[row] for row in rows]

    @staticmethod
    def bytes_for(config: ModelConfig, capacity: int, dtype: torch.dtype) -> int:
        """Memory of one slot."""
        rounded = -(-capacity // KV_BUCKET) * KV_BUCKET
        return 2 * config.n_layers * config.n_kv_heads * config.head_dim * rounded * dtype.itemsize
