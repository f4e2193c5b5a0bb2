"""The int8 scheme of the weights, alone in this file so that it can be replaced as a whole.

``quantize_layer`` sees all tensors of a layer at once: schemes that move factors between the
columns of a linear layer and the norm in front of it fit behind it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.weights.layout import is_linear

# Part of the key of a converted model: change it with the scheme, and old conversions are redone.
SCHEME = "absmax-rows-1"

_LIMIT = 127


def quantize_rows(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric, one scale per row: ``weight ~= int8 * scale[:, None]``.

    Args:
        weight: [N, K], finite.

    Returns:
        int8 values [N, K] in -127..127 (never -128, so that negation stays in range) and float32
        scales [N]. A row of zeros gets the scale 0.
    """
    # Two reductions instead of abs(): no temporary of the size of the weight.
    scale = np.maximum(weight.max(axis=1), -weight.min(axis=1)) / np.float32(_LIMIT)
    # Below the smallest normal number the reciprocal overflows; such rows are zero in effect.
    usable = scale > np.finfo(np.float32).tiny * 4
    scale = np.where(usable, scale, np.float32(0.0)).astype(np.float32)
    inverse = np.divide(np.float32(1.0), scale, out=np.zeros_like(scale), where=usable)
    scaled = weight * inverse[:, None]
    np.rint(scaled, out=scaled)
    np.clip(scaled, -_LIMIT, _LIMIT, out=scaled)
    return scaled.astype(np.int8), scale


def quantize_layer(tensors: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """A layer's fused float32 tensors (names within the layer) -> what is stored.

    A linear ``X.weight`` becomes int8 ``X.weight`` [N, K] and float32 ``X.scale`` [N]; norms and
    biases stay float32.
    """
    stored: dict[str, NDArray[Any]] = {}
    for name, values in tensors.items():
        if is_linear(name):
            stored[name], stored[name.removesuffix(".weight") + ".scale"] = quantize_rows(values)
        else:
            stored[name] = values
    return stored
