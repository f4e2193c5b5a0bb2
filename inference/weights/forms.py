"""What is stored of a linear weight in each numerics. Every form treats the rows of a weight separately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.api import Numerics
from inference.errors import UnsupportedNumerics
from inference.weights import quantize
from inference.weights.safetensors_file import round_to_bfloat16
from inference.weights.source import BLOCK_VALUES

# Part of the key of a conversion that has one of bitsandbytes' forms, as `quantize.SCHEME` is of all.
BITSANDBYTES_SCHEME = "nf4-64-rows-1,llm-int8-rows-1"

# Weights of one row that share a scale in nf4; the default of bitsandbytes.
NF4_BLOCK = 64

_FLOAT16_MAX = 65504.0


def stored(numerics: Numerics, weight: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """A finite weight [N, K] -> tensors by what comes after the layer's name.

    int8: see `quantize`. nf4: ``weight`` uint8 [N, K' / 2], two codes to a byte, the first in the high half,
    and ``nf4_absmax`` float32 [N, K' / 64], with K filled up with zeros to K', a multiple of 64. llm-int8:
    ``weight`` int8 [N, K] and ``llm_int8_absmax`` float32 [N]; 127 stands for absmax. Others: ``weight``
    [N, K] in their type, bf16 as bit patterns.

    Raises:
        UnsupportedNumerics: the weights are beyond the range of fp16, or bitsandbytes cannot be used.
    """
    if numerics == "int8":
        values, scale = quantize.quantize_rows(weight)
        return {"weight": values, "scale": scale}
    if numerics in ("nf4", "llm-int8"):
        form = _nf4 if numerics == "nf4" else _llm_int8
        # Quantising takes several times the memory of its input.
        step = max(1, BLOCK_VALUES // max(weight.shape[1], 1))
        parts = [form(weight[start : start + step]) for start in range(0, weight.shape[0], step)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {"weight": narrower(numerics)(weight)}


def stored_shape(numerics: Numerics, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of ``weight`` as `stored` gives it, for a weight of shape [N, K]."""
    rows, columns = shape
    return (rows, -(-columns // NF4_BLOCK) * NF4_BLOCK // 2) if numerics == "nf4" else (rows, columns)


def stored_bytes(numerics: Numerics, shape: tuple[int, ...]) -> int:
    """Bytes of all that `stored` gives for a weight of shape [N, K]."""
    rows, columns = shape
    if numerics == "nf4":
        return rows * -(-columns // NF4_BLOCK) * (NF4_BLOCK // 2 + 4)
    if numerics in ("int8", "llm-int8"):
        return rows * (columns + 4)
    return rows * columns * (4 if numerics == "fp32" else 2)


def narrower(numerics: Numerics) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    """The rounding of a floating-point form."""
    narrowers: dict[str, Callable[[NDArray[np.float32]], NDArray[Any]]] = {
        "bf16": round_to_bfloat16,
        "fp16": _to_float16,
        "fp32": lambda values: values,
    }
    return narrowers[numerics]


def _to_float16(values: NDArray[np.float32]) -> NDArray[np.float16]:
    if np.abs(values).max(initial=0.0) > _FLOAT16_MAX:
        raise UnsupportedNumerics(
            "This model has weights beyond the range of fp16.", "Use --numerics bf16 or int8."
        )
    return values.astype(np.float16)


def _nf4(weight: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    import torch  # here: other forms need neither torch nor bitsandbytes

    from inference.bitsandbytes_library import bitsandbytes

    rows, columns = weight.shape
    blocks = -(-columns // NF4_BLOCK)
    padded = np.pad(weight, ((0, 0), (0, blocks * NF4_BLOCK - columns)))
    codes, state = bitsandbytes().functional.quantize_4bit(
        torch.from_numpy(padded), blocksize=NF4_BLOCK, quant_type="nf4"
    )
    return {
        "weight": codes.numpy().reshape(rows, blocks * NF4_BLOCK // 2),
        "nf4_absmax": state.absmax.numpy().reshape(rows, blocks),
    }


def _llm_int8(weight: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    import torch

    from inference.bitsandbytes_library import bitsandbytes

    half = torch.from_numpy(_to_float16(weight))
    values, absmax, _ = bitsandbytes().functional.int8_vectorwise_quant(half)
    values[absmax == 0] = 0  # 0 / 0 before
    return {"weight": values.numpy(), "llm_int8_absmax": absmax.numpy()}
