"""LLM.int8(): 8-bit products, and outlier activations in 16 bits (arXiv 2208.07339), through bitsandbytes.

bitsandbytes' own ``Linear8bitLt`` looks for outliers in all rows of a call together: a column that is one in
any row leaves the 8-bit product of every row, so a row's bits depend on its neighbours. Here each row has its
own outliers, as if it came alone.
"""

from __future__ import annotations

import torch

from inference.bitsandbytes_library import bitsandbytes
from inference.model.linear.base import bias_bytes

THRESHOLD = 6.0  # section 3.2 of the paper
FLOAT16_MAX = 65504.0

# Without AVX512 bitsandbytes computes the integer product in float32, which is exact while sums stay below
# 2**24: 127 * 127 * 1024.
FLOAT_BLOCK = 1024


class LlmInt8Linear:
    """One LLM.int8() linear layer.

    Both parts are sums that do not depend on their order. Integers: the 8-bit product. Float64: fp16 outliers
    from 6 to 65504 are multiples of 2**-8 below 2**16, so that their products with int8 weights add up
    without rounding to 2**22 of them.

    Args:
        weight: int8 [out, in], values -127 .. 127.
        absmax: float32 [out], what 127 stands for.
        bias: float32 [out] or None.
        blocks: cut the integer product into exact float products; None where bitsandbytes has no other on
            this processor.

    Raises:
        UnsupportedNumerics: bitsandbytes cannot be used.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        absmax: torch.Tensor,
        bias: torch.Tensor | None,
        blocks: bool | None = None,
    ) -> None:
        functional = bitsandbytes().functional
        self._quantize_rows = functional.int8_vectorwise_quant
        self._product = functional.int8_linear_matmul
        self._weight = weight
        self._scale = absmax / 127.0
        self.bias = bias
        self.out_features, self.in_features = weight.shape
        if blocks is None:
            blocks = weight.device.type == "cpu" and torch.backends.cpu.get_cpu_capability() != "AVX512"
        self._block = FLOAT_BLOCK if blocks else self.in_features

    @property
    def weight_bytes(self) -> int:
        return self._weight.nbytes + self._scale.nbytes + bias_bytes(self.bias)

    @property
    def private_bytes(self) -> int:
        return 0  # used in place from the mapped file

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        half = x.clamp(-FLOAT16_MAX, FLOAT16_MAX).half().contiguous()  # the kernels take it for granted
        outlier = half.abs() >= THRESHOLD
        columns = outlier.any(dim=0).nonzero().view(-1)
        q, absmax, _ = self._quantize_rows(half.masked_fill(outlier, 0.0) if columns.numel() else half)
        y = self._integer_product(q).float().mul_((absmax / 127.0).unsqueeze(1))
        if columns.numel():
            # Columns that are outliers in other rows only are zero here, and add nothing.
            own = half[:, columns].masked_fill(~outlier[:, columns], 0.0).double()
            y += (own @ self._weight[:, columns].double().t()).float()
        y.mul_(self._scale)
        return y if self.bias is None else y.add_(self.bias)

    def _integer_product(self, q: torch.Tensor) -> torch.Tensor:
        parts = [
            self._product(q[:, start : start + self._block], self._weight[:, start : start + self._block])
            for start in range(0, self.in_features, self._block)
        ]
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum(dim=0, dtype=torch.int32)
