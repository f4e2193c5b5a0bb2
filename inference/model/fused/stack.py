"""All layers of an int8 decoder in one call of the compiled functions."""

from __future__ import annotations

import ctypes

import torch

from inference.cache.kv import KvSlot
from inference.model.config import ModelConfig
from inference.model.fused.library import BlockStruct, LayerStruct, Library, ModelStruct
from inference.model.layers import Layer
from inference.model.linear import Linear
from inference.model.linear.compiled import CompiledLinear
from inference.model.rope import RopeTable
from inference.model.tree import TreeShape

# Rows that share the keys of one pass in the cache; fewer where that would leave threads without work.
BLOCK = 8
# What forward.c measures, in its order.
STEPS = ("norm", "qkv", "rotate", "attention", "quantize", "out", "norm 2", "gate_up", "silu", "down")
MAX_INNER, MAX_DIM, DIM_STEP = 65536, 256, 64  # the limits of rows.c and attention.c


def supports(config: ModelConfig, layers: tuple[Layer, ...]) -> bool:
    """Whether the compiled functions have all that this model needs."""
    return (
        all(config.rope_layers)
        and config.residual_multiplier == 1.0
        and config.head_dim % DIM_STEP == 0
        and config.head_dim <= MAX_DIM
        and max(config.intermediate_size, config.hidden_size) <= MAX_INNER
        and all(_fits(config, layer) for layer in layers)
    )


def _fits(config: ModelConfig, layer: Layer) -> bool:
    """The functions are given addresses: shapes and types must be what the configuration says."""
    hidden, inner = config.hidden_size, config.intermediate_size
    mixed = config.n_heads * config.head_dim
    width = mixed + 2 * config.n_kv_heads * config.head_dim
    shapes = (
        (layer.qkv, hidden, width),
        (layer.out, mixed, hidden),
        (layer.gate_up, hidden, 2 * inner),
        (layer.down, inner, hidden),
    )
    for linear, inputs, outputs in shapes:
        if not isinstance(linear, CompiledLinear):
            return False
        if (linear.in_features, linear.out_features) != (inputs, outputs):
            return False
        if not _plain(linear.scale, outputs):
            return False
        if linear.bias is not None and (linear is not layer.qkv or not _plain(linear.bias, width)):
            return False
    norms = (layer.attn_norm, layer.mlp_norm)
    return layer.q_norm is None and layer.k_norm is None and all(_plain(norm, hidden) for norm in norms)


def _plain(tensor: torch.Tensor, size: int) -> bool:
    return tensor.dtype is torch.float32 and tensor.shape == (size,) and tensor.is_contiguous()


class FusedStack:
    """Runs the layers. The same contract as `inference.model.layers.TorchStack`, and trees.

    Attributes:
        laps: float64 [len(STEPS)], to which the seconds of each step are added; None: nothing is measured.
    """

    def __init__(
        self, config: ModelConfig, layers: tuple[Layer, ...], rope: RopeTable, library: Library
    ) -> None:
        self._config = config
        self._layers = layers  # what the addresses point into
        self._rope = rope
        self._library = library
        self._work = torch.empty(0)
        self.laps: torch.Tensor | None = None
        self._structs = (LayerStruct * len(layers))(*(_struct(layer) for layer in layers))
        self._model = ModelStruct(
            self._structs,
            len(layers),
            config.hidden_size,
            config.intermediate_size,
            config.n_heads,
            config.n_kv_heads,
            config.head_dim,
            config.rms_eps,
            config.attention_scale,
        )

    def __call__(self, x: torch.Tensor, slot: KvSlot, tree: TreeShape | None = None) -> torch.Tensor:
        """Append rows to the slot; ``x`` [rows, hidden] is changed in place and returned."""
        config = self._config
        rows, hidden, first = x.shape[0], config.hidden_size, slot.length
        heads, kv_heads, dim = config.n_heads, config.n_kv_heads, config.head_dim
        inner, width = config.intermediate_size, (heads + 2 * kv_heads) * dim
        x = x.contiguous()
        quantized = torch.empty(rows, max(hidden, inner, heads * dim), dtype=torch.uint8)
        y = torch.empty(rows, max(2 * inner, width, hidden))
        scale = torch.empty(rows)
        query, mixed = torch.empty(rows, heads, dim), torch.empty(rows, heads * dim)
        threads = torch.get_num_threads()
        unit = max(1, min(BLOCK, rows * kv_heads // threads))
        work_size = self._library.attention_work(heads, kv_heads, dim, unit, first + rows)
        if self._work.numel() < work_size * threads:
            self._work = torch.empty(work_size * threads)
        layers = [_addresses(kind) for kind in slot.buffers]
        block = BlockStruct(
            x.data_ptr(),
            rows,
            first,
            self._rope.cos[first:].data_ptr(),
            self._rope.sin[first:].data_ptr(),
            None if tree is None else tree.depth.data_ptr(),
            None if tree is None else tree.path.data_ptr(),
            *(None if array is None else ctypes.addressof(array) for array in layers),
            slot.capacity,
            scale.data_ptr(),
            y.data_ptr(),
            query.data_ptr(),
            mixed.data_ptr(),
            self._work.data_ptr(),
            quantized.data_ptr(),
            unit,
            work_size,
            None if self.laps is None else self.laps.data_ptr(),
        )
        self._library.layers(ctypes.byref(self._model), ctypes.byref(block), threads)
        return x


def _struct(layer: Layer) -> LayerStruct:
    linears = (_compiled(linear).struct for linear in layer.linears)
    return LayerStruct(layer.attn_norm.data_ptr(), layer.mlp_norm.data_ptr(), *linears)


def _addresses(tensors: list[torch.Tensor]) -> ctypes.Array[ctypes.c_void_p] | None:
    """A C array of where the tensors begin; None for none."""
    return (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors)) if tensors else None


def _compiled(linear: Linear) -> CompiledLinear:
    assert isinstance(linear, CompiledLinear)
    return linear
