"""Floating-point linear layers: the references, and the path of GPUs."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from inference.model.linear.base import bias_bytes

# A BLAS picks its kernel, and with it the order of summation, by the shape of the call. Every call
# therefore has this one shape on a CPU; the last tile is padded with zero rows.
ROW_TILE = 16


class DenseLinear:
    """Weights in fp32, bf16 or fp16, products summed by the BLAS of the device."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.weight = weight  # [out, in]
        self.bias = bias  # float32 [out]
        self.out_features, self.in_features = weight.shape

    @property
    def weight_bytes(self) -> int:
        return self.weight.nbytes + bias_bytes(self.bias)

    @property
    def private_bytes(self) -> int:
        return 0  # used in place from the mapped file

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = product(x, self.weight)
        return y if self.bias is None else y.add_(self.bias)


def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """float32 [rows, in] and any floating [out, in] -> float32 [rows, out], computed in the weight's type."""
    rows = x.shape[0]
    x = x.to(weight.dtype)
    if x.device.type != "cpu":
        return F.linear(x, weight).float()
    padded = -(-rows // ROW_TILE) * ROW_TILE
    if padded != rows:
        x = F.pad(x, (0, 0, 0, padded - rows))
    tiles = [F.linear(x[i : i + ROW_TILE], weight) for i in range(0, padded, ROW_TILE)]
    return (tiles[0] if len(tiles) == 1 else torch.cat(tiles))[:rows].float()
