"""Are the compiled functions right on this machine, and is a row's result its own?"""

from __future__ import annotations

from dataclasses import replace

import torch

from inference.api import KvNumerics
from inference.cache.kv import KV_BUCKET, KvSlot
from inference.model.config import ModelConfig
from inference.model.fused.huge_pages import Arena
from inference.model.fused.library import Library
from inference.model.fused.stack import FusedStack
from inference.model.layers import Layer, TorchStack
from inference.model.linear.compiled import CompiledLinear
from inference.model.rope import RopeTable
from inference.model.tree import shape_of

# Of the norm of what the layers add. Another order of sums moves some activations across the edge of an int8
# step, which is worth less than 1 %; a wrong function is worth far more.
TOLERANCE = 0.05
_LAYERS = 2
_ROWS = 21
_PARTS = (slice(0, 1), slice(1, 2), slice(2, 5), slice(5, 13), slice(13, 21))
# Outputs, inputs: with and without an incomplete block and an incomplete part.
_SHAPES = ((1, 4), (96, 896), (50, 1340))
_WIDTHS = (1, 2, 3, 7, 13, 14, 15, 32, 150)
# A chain of three, and two more behind its second row.
_PARENTS = [-1, 0, 1, 1, 3]
_CHAINS = ([0, 1, 2], [0, 1, 3, 4])


def product_fault(library: Library) -> str | None:
    """What is wrong with the compiled integer products, None if nothing."""
    generator = torch.Generator().manual_seed(29)
    for outputs, inputs in _SHAPES:
        weight = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
        weight[0] = 127  # sums as large as they get
        scale = torch.rand(outputs, generator=generator)
        linear = CompiledLinear(weight, scale, None, library, Arena(0))
        for rows in _WIDTHS:
            q = torch.randint(1, 256, (rows, inputs), generator=generator).to(torch.uint8)
            q[0] = 255
            right = ((q.double() - 128) @ weight.double().t()).float().mul_(scale)
            if not torch.equal(linear.product(q), right):
                return "the compiled integer products are wrong"
    return None


def fault(
    config: ModelConfig,
    layers: tuple[Layer, ...],
    library: Library,
    tiles: tuple[int, ...],
    kv: KvNumerics = "fp32",
) -> str | None:
    """What is wrong with the compiled functions on the first layers of this model, None if nothing."""
    some = layers[:_LAYERS]
    config = replace(config, n_layers=len(some), rope_layers=config.rope_layers[: len(some)])
    rope = RopeTable(config, 2 * KV_BUCKET, torch.device("cpu"))
    generator = torch.Generator().manual_seed(19)
    x = torch.randn(_ROWS, config.hidden_size, generator=generator)

    def slot() -> KvSlot:
        filled = KvSlot(config, 2 * KV_BUCKET, torch.device("cpu"), kv)
        again = torch.Generator().manual_seed(23)
        shape = (2, filled.capacity, config.n_kv_heads, config.head_dim)
        for layer in range(config.n_layers):
            filled.store(layer, 0, *torch.randn(shape, generator=again))
        filled.tokens = [0] * (KV_BUCKET - 9)
        return filled

    fused = FusedStack(config, some, rope, library)
    whole = fused(x.clone(), slot())
    right = TorchStack(config, some, rope, tiles)(x.clone(), slot())
    if not (whole - right).norm() <= TOLERANCE * (right - x).norm():
        return "the compiled functions give wrong values"
    parts, filled = [], slot()
    for part in _PARTS:
        parts.append(fused(x[part].clone(), filled))
        filled.tokens += [0] * (part.stop - part.start)
    if not torch.equal(torch.cat(parts), whole):
        return "the compiled functions give a row other bits beside other rows"
    tree = fused(x[: len(_PARENTS)].clone(), slot(), shape_of(_PARENTS))
    for chain in _CHAINS:
        if not torch.equal(fused(x[chain].clone(), slot()), tree[chain]):
            return "the compiled functions give a row other bits in a tree"
    return None
