"""All layers of an int8 decoder, with the compiled functions between the linear layers."""

from __future__ import annotations

import torch

from inference.cache.kv import KvSlot
from inference.model.config import ModelConfig
from inference.model.fused.library import Library
from inference.model.layers import Layer
from inference.model.linear import Linear
from inference.model.linear.int8 import Int8Linear
from inference.model.rope import RopeTable

# Rows that share the keys of one pass in the cache; fewer where that would leave threads without work.
BLOCK = 8
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
        if not isinstance(linear, Int8Linear):
            return False
        if (linear.in_features, linear.out_features) != (inputs, outputs):
            return False
        if linear.bias is not None and (linear is not layer.qkv or not _plain(linear.bias, width)):
            return False
    norms = (layer.attn_norm, layer.mlp_norm)
    return layer.q_norm is None and layer.k_norm is None and all(_plain(norm, hidden) for norm in norms)


def _plain(tensor: torch.Tensor, size: int) -> bool:
    return tensor.dtype is torch.float32 and tensor.shape == (size,) and tensor.is_contiguous()


class FusedStack:
    """Runs the layers. The same contract as `inference.model.layers.TorchStack`."""

    def __init__(
        self, config: ModelConfig, layers: tuple[Layer, ...], rope: RopeTable, library: Library
    ) -> None:
        self._config = config
        self._layers = layers
        self._rope = rope
        self._library = library
        self._work = torch.empty(0)

    def __call__(self, x: torch.Tensor, slot: KvSlot) -> torch.Tensor:
        """Append rows to the slot; ``x`` [rows, hidden] is changed in place and returned."""
        config, library = self._config, self._library
        rows, hidden, first = x.shape[0], config.hidden_size, slot.length
        heads, kv_heads, dim = config.n_heads, config.n_kv_heads, config.head_dim
        inner, eps = config.intermediate_size, config.rms_eps
        x = x.contiguous()
        quantized = torch.empty(rows, hidden, dtype=torch.uint8)
        wide = torch.empty(rows, inner, dtype=torch.uint8)
        attended = torch.empty(rows, heads * dim, dtype=torch.uint8)
        scale = torch.empty(rows)
        query, mixed = torch.empty(rows, heads, dim), torch.empty(rows, heads * dim)
        to_x, to_quantized, to_wide, to_attended = (t.data_ptr() for t in (x, quantized, wide, attended))
        to_scale, to_query, to_mixed = scale.data_ptr(), query.data_ptr(), mixed.data_ptr()
        cosine = self._rope.cos[first : first + rows].data_ptr()
        sine = self._rope.sin[first : first + rows].data_ptr()
        threads = torch.get_num_threads()
        block = max(1, min(BLOCK, rows * kv_heads // threads))
        work_size = library.attention_work(heads, kv_heads, dim, block, first + rows)
        if self._work.numel() < work_size * threads:
            self._work = torch.empty(work_size * threads)
        to_work = self._work.data_ptr()
        y: torch.Tensor | None = None
        for index, layer in enumerate(self._layers):
            keys, values = slot.keys[index].data_ptr(), slot.values[index].data_ptr()
            key_scales, value_scales = _scales(slot, index)
            library.add_norm(
                to_x,
                _address(y),
                to_scale,
                rows,
                hidden,
                layer.attn_norm.data_ptr(),
                eps,
                to_quantized,
                to_scale,
            )
            y = _product(layer.qkv, quantized)
            library.rotate(
                y.data_ptr(), to_scale, _bias(layer.qkv), rows, heads, kv_heads, dim, cosine, sine,
                to_query, keys, values, slot.capacity, first, key_scales, value_scales,
            )  # fmt: skip
            library.attention(
                to_query, keys, values, rows, heads, kv_heads, dim, slot.capacity, first,
                config.attention_scale, block, threads, to_work, work_size, to_mixed,
                key_scales, value_scales,
            )  # fmt: skip
            library.quantize(to_mixed, rows, heads * dim, to_attended, to_scale)
            y = _product(layer.out, attended)
            library.add_norm(
                to_x,
                y.data_ptr(),
                to_scale,
                rows,
                hidden,
                layer.mlp_norm.data_ptr(),
                eps,
                to_quantized,
                to_scale,
            )
            y = _product(layer.gate_up, quantized)
            library.silu(y.data_ptr(), to_scale, rows, inner, to_wide, to_scale)
            y = _product(layer.down, wide)
        library.add_norm(to_x, _address(y), to_scale, rows, hidden, None, eps, None, None)
        return x


def _product(linear: Linear, q: torch.Tensor) -> torch.Tensor:
    assert isinstance(linear, Int8Linear)
    return linear.product(q)


def _bias(linear: Linear) -> int | None:
    assert isinstance(linear, Int8Linear)
    return _address(linear.bias)


def _scales(slot: KvSlot, layer: int) -> tuple[int | None, int | None]:
    """Of the keys and of the values; None where they are float32."""
    if slot.numerics == "fp32":
        return None, None
    return slot.key_scales[layer].data_ptr(), slot.value_scales[layer].data_ptr()


def _address(tensor: torch.Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
