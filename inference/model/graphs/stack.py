"""All layers through recorded forwards of a few fixed widths."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import torch

from inference.cache.kv import KV_BUCKET, KvSlot
from inference.model.config import ModelConfig
from inference.model.graphs.block import BlockLayers, Buffers, Rows, causal_rows
from inference.model.graphs.capture import Capture
from inference.model.layers import Layer, TorchStack
from inference.model.rope import RopeTable
from inference.model.tree import TreeShape

# One width for all blocks. A GPU's library chooses the kernel of a matrix product, and with it the order of
# its sums, by shape: a row has the same bits alone and in a draft only if both have one shape. 32 rows
# hold the widest draft, and cost a product that waits for memory no more than one row.
FIXED_WIDTH = 32
# Where equal bits are not wanted, or a product grows with its rows.
WIDTHS = (1, 2, 4, 8, 16, 32)


class GraphStack:
    """Runs the layers. The same contract as `inference.model.layers.TorchStack`.

    Blocks are cut where a bucket of positions ends, and where a width is full, then padded to a width. Each
    (slot, width, bucket) is recorded at its first use. If recording fails the same operations run one by one.

    Args:
        capture: records a function; `CudaCapture`, or a stand-in in tests.
        eager: the same layers, for what is not recorded: blocks wider than the widest of several widths
            (prompts above all), and caches that are not floating-point.
        widths: ascending. With one of them every row goes through this one shape.

    Attributes:
        note: why forwards are not recorded, "" while they are.
    """

    def __init__(
        self,
        config: ModelConfig,
        layers: tuple[Layer, ...],
        rope: RopeTable,
        capture: Capture,
        eager: TorchStack,
        widths: tuple[int, ...] = (FIXED_WIDTH,),
    ) -> None:
        self._config = config
        self._layers = BlockLayers(config, layers, rope)
        self._capture = capture
        self.widths = widths
        self._eager = eager
        self._buffers: dict[tuple[int, int], Buffers] = {}
        # A recording holds addresses: it goes with its slot.
        self._recorded: weakref.WeakKeyDictionary[KvSlot, _Recordings] = weakref.WeakKeyDictionary()
        self.note = ""

    @torch.inference_mode()
    def __call__(self, x: torch.Tensor, slot: KvSlot, tree: TreeShape | None = None) -> torch.Tensor:
        """Append rows to the slot's buffers, not to its tokens. float32 [rows, hidden] to the same.

        ``tree`` is None: chains only; `run` takes any rows.
        """
        assert tree is None
        wide = len(self.widths) > 1 and x.shape[0] > self.widths[-1]
        if wide or not slot.keys[0].is_floating_point():
            return self._eager(x, slot)
        parts, row, count = [], 0, x.shape[0]
        while row < count:
            first = slot.length + row
            bucket = (first // KV_BUCKET + 1) * KV_BUCKET
            stop = min(count, row + self.widths[-1], row + bucket - first)
            rows = causal_rows(first, stop - row, bucket, x.device)
            parts.append(self.run(x[row:stop], rows, slot))
            row = stop
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    @torch.inference_mode()
    def run(self, x: torch.Tensor, rows: Rows, slot: KvSlot) -> torch.Tensor:
        """Any rows that fit the widest width, e.g. a tree of candidates.

        Args:
            x: float32 [rows, hidden].
            rows: with ``visible`` over whole buckets, all places below its end.

        Raises:
            ValueError: too many rows, the mask is not whole buckets of this slot, or its cache is not
                floating-point.
        """
        count, bucket = x.shape[0], rows.visible.shape[1]
        if not slot.keys[0].is_floating_point():
            raise ValueError(f"keys and values in {slot.keys[0].dtype}")
        if not 0 < count <= self.widths[-1]:
            raise ValueError(f"{count} rows do not fit a width of {self.widths[-1]}")
        if bucket % KV_BUCKET or not 0 < bucket <= slot.capacity:
            raise ValueError(f"a mask over {bucket} of {slot.capacity} positions")
        width = next(width for width in self.widths if width >= count)
        buffers = self._buffers.get((width, bucket))
        if buffers is None:
            buffers = self._buffers[width, bucket] = Buffers(self._config, width, bucket, x.device)
        buffers.fill(x, rows)
        self._forward(buffers, slot)()
        return buffers.out[:count].clone()

    def _forward(self, buffers: Buffers, slot: KvSlot) -> Callable[[], None]:
        """One forward over these buffers, recorded if possible."""
        keys, values = list(slot.keys), list(slot.values)
        layers = self._layers

        def function() -> None:
            layers.run(buffers, keys, values)

        if self.note:
            return function
        addresses = tuple(tensor.data_ptr() for tensor in (*keys, *values))
        kept = self._recorded.get(slot)
        if kept is None or kept.addresses != addresses:
            kept = self._recorded[slot] = _Recordings(addresses, {})
        kind = (buffers.width, buffers.bucket)
        if kind not in kept.replays:
            try:
                kept.replays[kind] = self._capture(function)
            except RuntimeError as error:
                line = (str(error).splitlines() or [type(error).__name__])[0]
                self.note = f"Forward passes are not recorded on this device: {line}"
                self._recorded.clear()
                return function
        return kept.replays[kind]


@dataclass
class _Recordings:
    """Of one slot whose buffers are at these addresses, by width and bucket."""

    addresses: tuple[int, ...]
    replays: dict[tuple[int, int], Callable[[], None]]
