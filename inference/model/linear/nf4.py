"""NF4: 4-bit weights in blocks with a scale each (arXiv 2305.14314, section 3), through bitsandbytes.

Products are computed in bf16 by bitsandbytes' own kernels on CUDA and on CPUs with AVX512-BF16. On other
CPUs a layer is unpacked to float32 at every call and multiplied by the BLAS.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from inference.bitsandbytes_library import bitsandbytes
from inference.model.linear.base import bias_bytes
from inference.model.linear.dense import product
from inference.weights.forms import NF4_BLOCK

KERNEL_ROWS = 32  # bitsandbytes' CPU kernel takes outputs in groups of so many


class Nf4Linear:
    """One NF4 linear layer.

    bitsandbytes' CPU kernel sums each row for itself in one order, whatever the number of rows; the BLAS is
    called with one shape (`dense.product`). Both keep a row's bits its own. bitsandbytes' CUDA kernels are
    chosen by the number of rows, so there they do not.

    Args:
        weight: uint8 [out, in / 2], two codes to a byte, the first in the high half; rows are padded with
            zero weights to whole blocks.
        absmax: float32 [out, in / NF4_BLOCK], what code 1.0 stands for; the CPU kernel rounds it to bf16.
        bias: float32 [out] or None.
        packed: repack for bitsandbytes' CPU kernel; None where the processor has it.

    Raises:
        UnsupportedNumerics: bitsandbytes cannot be used.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        absmax: torch.Tensor,
        bias: torch.Tensor | None,
        packed: bool | None = None,
    ) -> None:
        library = bitsandbytes()
        on_cpu = weight.device.type == "cpu"
        self.bias = bias
        self.out_features, self.in_features = weight.shape[0], 2 * weight.shape[1]
        if packed is None:
            packed = on_cpu and bool(library.functional.has_avx512bf16())
        self.packed = packed and self.out_features % KERNEL_ROWS == 0
        self._unpacks = on_cpu and not self.packed
        self._dequantize = library.functional.dequantize_4bit
        self._module = _module(library, weight, absmax, torch.float32 if self._unpacks else torch.bfloat16)
        # The module repacks at its first call unless this says that its kernel is missing.
        self._module.support_avx512bf16_for_cpu = self.packed
        if self.packed:
            self._module(torch.zeros(1, self.in_features))

    @property
    def weight_bytes(self) -> int:
        return self._packed_bytes + bias_bytes(self.bias)

    @property
    def private_bytes(self) -> int:
        return self._packed_bytes if self.packed else 0  # else used in place from the mapped file

    @property
    def _packed_bytes(self) -> int:
        weight = self._module.weight
        return int(weight.data.nbytes + weight.quant_state.absmax.nbytes)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()  # the kernels take it for granted
        if x.shape[1] != self.in_features:
            x = F.pad(x, (0, self.in_features - x.shape[1]))
        if self._unpacks:
            weight = self._module.weight
            y = product(x, self._dequantize(weight.data, weight.quant_state))
        else:
            y = self._module(x)
        return y if self.bias is None else y.add_(self.bias)


def _module(library: Any, weight: torch.Tensor, absmax: torch.Tensor, compute: torch.dtype) -> Any:
    """A ``bitsandbytes.nn.Linear4bit`` over weights that are quantised already."""
    shape = torch.Size((weight.shape[0], 2 * weight.shape[1]))
    state = library.functional.QuantState(
        absmax=absmax.reshape(-1),
        shape=shape,
        code=library.functional.get_4bit_type("nf4", device=weight.device),
        blocksize=NF4_BLOCK,
        quant_type="nf4",
        dtype=compute,
    )
    module = library.nn.Linear4bit(
        shape[1],
        shape[0],
        bias=False,
        compute_dtype=compute,
        compress_statistics=False,
        quant_type="nf4",
        device="meta",
    )
    module.weight = library.nn.Params4bit(
        weight.reshape(-1, 1),
        quant_state=state,
        blocksize=NF4_BLOCK,
        compress_statistics=False,
        quant_type="nf4",
        bnb_quantized=True,
    )
    return module.eval()
