"""Which tensors of transformers become which tensor of the converted form.

Linear layers that read the same input are fused row-wise: one large product is faster than
several small ones, and its rows are still the same dot products.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference.errors import CorruptFile, UnsupportedArchitecture

EMBED = "embed.weight"
HEAD = "head.weight"
FINAL_NORM = "final_norm.weight"

SOURCE_EMBED = "model.embed_tokens.weight"
SOURCE_HEAD = "lm_head.weight"
SOURCE_FINAL_NORM = "model.norm.weight"

# Name within a layer -> its parts in transformers, in row order. All are required.
_REQUIRED: dict[str, tuple[str, ...]] = {
    "attn_norm.weight": ("input_layernorm.weight",),
    "attn.qkv.weight": (
        "self_attn.q_proj.weight",
        "self_attn.k_proj.weight",
        "self_attn.v_proj.weight",
    ),
    "attn.out.weight": ("self_attn.o_proj.weight",),
    "mlp_norm.weight": ("post_attention_layernorm.weight",),
    "mlp.gate_up.weight": ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
    "mlp.down.weight": ("mlp.down_proj.weight",),
}

# The same for what only some models have.
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "attn.qkv.bias": ("self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"),
    "attn.out.bias": ("self_attn.o_proj.bias",),
    "attn.q_norm.weight": ("self_attn.q_norm.weight",),
    "attn.k_norm.weight": ("self_attn.k_norm.weight",),
    "mlp.gate_up.bias": ("mlp.gate_proj.bias", "mlp.up_proj.bias"),
    "mlp.down.bias": ("mlp.down_proj.bias",),
}

# In the order in which a forward pass runs them.
_LINEAR = ("attn.qkv.weight", "attn.out.weight", "mlp.gate_up.weight", "mlp.down.weight")

# Buffers that old exporters saved though they follow from the config.
_IGNORED_SUFFIXES = (".rotary_emb.inv_freq", ".attn.masked_bias")


def is_linear(name: str) -> bool:
    """Whether a name within a layer is a linear weight (others stay float32)."""
    return name in _LINEAR


def linear_names(layer_count: int) -> tuple[str, ...]:
    """All linear layers of a model, in the order in which a forward pass runs them."""
    layers = (f"layers.{i}.{name}" for i in range(layer_count) for name in _LINEAR)
    return tuple(name.removesuffix(".weight") for name in (*layers, HEAD))


@dataclass(frozen=True)
class Layer:
    """One layer: ``tensors`` maps a name within the layer to full source names, in row order."""

    index: int
    tensors: dict[str, tuple[str, ...]]

    @property
    def prefix(self) -> str:
        """Of the converted names."""
        return f"layers.{self.index}."


@dataclass(frozen=True)
class Layout:
    """The whole model; ``tied`` means the head is the embedding."""

    layers: tuple[Layer, ...]
    tied: bool


def plan(names: Collection[str], layer_count: int, tied: bool, where: str) -> Layout:
    """Assign every tensor of a model.

    Raises:
        CorruptFile: a tensor is missing.
        UnsupportedArchitecture: a tensor has no place here; ignoring it would change the results.
    """
    left = {name for name in names if not name.endswith(_IGNORED_SUFFIXES)}
    tied = tied or SOURCE_HEAD not in left

    def take(parts: tuple[str, ...]) -> tuple[str, ...]:
        missing = [part for part in parts if part not in left]
        if missing:
            raise CorruptFile(f"{where} lacks the tensor {missing[0]}.", "Fetch the model again.")
        left.difference_update(parts)
        return parts

    take((SOURCE_EMBED, SOURCE_FINAL_NORM))
    left.discard(SOURCE_HEAD)  # a tied model may carry a copy
    layers = []
    for index in range(layer_count):
        prefix = f"model.layers.{index}."
        tensors = {}
        for name, parts in _REQUIRED.items():
            tensors[name] = take(tuple(prefix + part for part in parts))
        for name, parts in _OPTIONAL.items():
            full = tuple(prefix + part for part in parts)
            if any(part in left for part in full):
                tensors[name] = take(full)
        layers.append(Layer(index, tensors))
    if left:
        raise UnsupportedArchitecture(
            f"{where} has tensors Draftline knows no use for, e.g. {min(left)}.",
            "Choose another model; running this one without them would give wrong text.",
        )
    return Layout(tuple(layers), tied)
