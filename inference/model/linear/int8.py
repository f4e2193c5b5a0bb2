"""int8 weights x int8 activations, summed in integers.

Weights are symmetric per output row, activations symmetric per input row (the "dynamic" scheme of
arXiv 2206.01861). Integer sums do not depend on their order, so a row's result is the same
whatever else is in the batch.
"""

from __future__ import annotations

from enum import Enum

import torch

from inference.model.linear.base import bias_bytes

ZERO_POINT = 128  # unsigned activations: q + 128 in 1 .. 255


class Int8Kernel(str, Enum):
    """How the integer product is computed; `inference.probe` chooses by values, then by time.

    COMPILED: `inference.model.linear.compiled`, by the C compiler of the machine.
    ONEDNN: one u8 x s8 product. Exact on AMX and wherever there is VNNI.
    ONEDNN_SPLIT: without VNNI, sums of two adjacent u8 x s8 products saturate in 16 bits. Splitting the
        activation into its low 7 bits and its top bit keeps every pair below 2 * 127 * 127 < 2**15;
        both halves go through one call as twice the rows, so weights are still read once.
    FLOAT: exact products in float32, summed in blocks short enough to stay below 2**24. For
        processors on which the other two are missing or wrong.
    """

    COMPILED = "compiled"
    ONEDNN = "onednn-u8"
    ONEDNN_SPLIT = "onednn-u8-split"
    FLOAT = "float-blocks"


# 127 * 127 * 1024 < 2**24: partial sums of this many products are exact in float32.
FLOAT_BLOCK = 1024


def quantize_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 [rows, in] -> uint8 [rows, in] around ZERO_POINT, and scales float32 [rows, 1].

    Only maxima and element-wise arithmetic: no result depends on the order of a sum.
    """
    peak = x.abs().amax(dim=-1, keepdim=True).clamp_min_(1e-30)
    q = (x * (127.0 / peak)).round_().add_(ZERO_POINT).to(torch.uint8)
    return q, peak.mul_(1.0 / 127.0)


class Int8Linear:
    """One int8 linear layer, packed for the chosen kernel.

    Args:
        weight: int8 [out, in], values -127 .. 127.
        scale: float32 [out].
        bias: float32 [out] or None.
    """

    def __init__(
        self, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None, kernel: Int8Kernel
    ) -> None:
        self.kernel = kernel
        self.bias = bias
        self.out_features, self.in_features = weight.shape
        self.scale = scale
        self._zeros = torch.zeros(self.out_features, dtype=torch.int32)
        if kernel is Int8Kernel.ONEDNN_SPLIT:
            self._ones = torch.ones_like(scale)
            self._column_sum = weight.sum(dim=1, dtype=torch.int64).double()
        if kernel is Int8Kernel.FLOAT:
            self._weight = weight
        else:
            self._weight = torch.ops.onednn.qlinear_prepack(weight, None)

    @property
    def weight_bytes(self) -> int:
        return self.out_features * self.in_features + self.scale.nbytes + bias_bytes(self.bias)

    @property
    def private_bytes(self) -> int:
        return 0 if self.kernel is Int8Kernel.FLOAT else self.out_features * self.in_features

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        q, row_scale = quantize_rows(x)
        y = self.product(q).mul_(row_scale)
        return y if self.bias is None else y.add_(self.bias)

    def product(self, q: torch.Tensor) -> torch.Tensor:
        """uint8 [rows, in] as `quantize_rows` gives -> float32 [rows, out] without row scales and bias."""
        if self.kernel is Int8Kernel.ONEDNN:
            return self._onednn(q, ZERO_POINT, self.scale)
        if self.kernel is Int8Kernel.ONEDNN_SPLIT:
            return self._split(q)
        return self._float_blocks(q)

    def _onednn(self, q: torch.Tensor, zero_point: int, scale: torch.Tensor) -> torch.Tensor:
        return torch.ops.onednn.qlinear_pointwise(  # type: ignore[no-any-return]
            q, 1.0, zero_point, self._weight, scale, self._zeros,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip

    def _split(self, q: torch.Tensor) -> torch.Tensor:
        rows = q.shape[0]
        halves = torch.cat((q & 0x7F, q >> 7))
        # Scale 1: whole sums come back, exact in float32 up to 2**24 and rounded once beyond that.
        sums = self._onednn(halves, 0, self._ones)
        # q - 128 = low + 128 * (top - 1)
        low, top = sums[:rows].double(), sums[rows:].double()
        return (low + 128.0 * (top - self._column_sum)).float().mul_(self.scale)

    def _float_blocks(self, q: torch.Tensor) -> torch.Tensor:
        signed = q.float().sub_(ZERO_POINT)
        total = torch.zeros(q.shape[0], self.out_features, dtype=torch.float64)
        for start in range(0, self.in_features, FLOAT_BLOCK):
            part = slice(start, start + FLOAT_BLOCK)
            total += signed[:, part] @ self._weight[:, part].float().t()
        return total.float().mul_(self.scale)
