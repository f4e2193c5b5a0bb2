"""Linear layers of random weights, to try kernels without a model."""

from __future__ import annotations

import torch

from inference.api import Numerics
from inference.model.linear.base import Linear
from inference.model.linear.compiled import CompiledLinear
from inference.model.linear.dense import DenseLinear
from inference.model.linear.int8 import Int8Kernel, Int8Linear
from inference.model.linear.llm_int8 import LlmInt8Linear
from inference.model.linear.nf4 import Nf4Linear
from inference.weights.forms import NF4_BLOCK

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# Makes outliers of LLM.int8() in some columns of some rows.
_LARGE = 20.0


def random_linear(
    numerics: Numerics,
    outputs: int,
    inputs: int,
    device: torch.device,
    int8: Int8Kernel | CompiledLinear | None,
) -> Linear:
    """A layer without bias.

    Args:
        int8: how int8 products are computed, or a layer that computes them; needed for int8 only.

    Raises:
        UnsupportedNumerics: the numerics need bitsandbytes, which cannot be used.
    """
    generator = torch.Generator().manual_seed(17)

    def integers(low: int, high: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.randint(low, high, (outputs, width), dtype=dtype, generator=generator).to(device)

    if numerics == "nf4":
        blocks = -(-inputs // NF4_BLOCK)
        codes = integers(0, 256, blocks * NF4_BLOCK // 2, torch.uint8)
        return Nf4Linear(codes, torch.full((outputs, blocks), 0.05, device=device), None)
    scale = torch.full((outputs,), 0.05, device=device)
    if numerics == "llm-int8":
        return LlmInt8Linear(integers(-127, 128, inputs, torch.int8), scale, None)
    if numerics == "int8":
        assert int8 is not None
        weight = integers(-127, 128, inputs, torch.int8)
        if isinstance(int8, CompiledLinear):
            return int8.like(weight, scale)
        return Int8Linear(weight, scale, None, int8)
    weight = torch.randn(outputs, inputs, generator=generator)
    return DenseLinear(weight.to(device, DTYPES[numerics]))


def rows_agree(linear: Linear, inputs: int) -> bool:
    """Whether a layer gives a row the same bits at any place in any block."""
    x = torch.randn(41, inputs, generator=torch.Generator().manual_seed(29))
    x[::3, ::37] *= _LARGE
    whole = linear(x)
    parts = (slice(0, 1), slice(3, 22), slice(5, 38), slice(40, 41))
    return all(torch.equal(linear(x[part]), whole[part]) for part in parts)
