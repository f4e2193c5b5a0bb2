"""int8 weights x int8 activations through the compiled functions; the same sums as `int8.Int8Linear`."""

from __future__ import annotations

import ctypes

import torch

from inference.model.fused.huge_pages import Arena
from inference.model.fused.library import Library, LinearStruct
from inference.model.linear.base import bias_bytes

BLOCK = 32  # outputs; see product.c
STEP = 4  # inputs


def fits(weight: torch.Tensor) -> bool:
    """Whether a weight int8 [out, in] can be packed."""
    return weight.dtype is torch.int8 and weight.shape[1] % STEP == 0


class CompiledLinear:
    """One int8 linear layer, packed for product.c.

    Args:
        weight: int8 [out, in], values -127 .. 127; ``in`` a multiple of 4. Not kept.
        scale: float32 [out].
        bias: float32 [out] or None.
        arena: where the packed weight is stored.

    Raises:
        MemoryError: there is no room for the packed weight.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        scale: torch.Tensor,
        bias: torch.Tensor | None,
        library: Library,
        arena: Arena,
    ) -> None:
        weight = weight.contiguous()
        self.out_features, self.in_features = weight.shape
        self.scale = scale.contiguous()
        self.bias = None if bias is None else bias.contiguous()
        self._library = library
        blocks = -(-self.out_features // BLOCK)
        self._packed = arena.allocate(blocks * BLOCK * self.in_features)
        self._offset = torch.empty(self.out_features, dtype=torch.int32)
        library.pack(
            weight.data_ptr(), self.out_features, self.in_features,
            self._packed.data_ptr(), self._offset.data_ptr(),
        )  # fmt: skip
        self.struct = LinearStruct(
            self._packed.data_ptr(),
            self._offset.data_ptr(),
            self.scale.data_ptr(),
            None if self.bias is None else self.bias.data_ptr(),
            self.in_features,
            self.out_features,
        )

    def like(self, weight: torch.Tensor, scale: torch.Tensor) -> CompiledLinear:
        """Another layer with the same functions and memory of its own."""
        return CompiledLinear(weight, scale, None, self._library, Arena(0))

    @property
    def weight_bytes(self) -> int:
        return self.out_features * self.in_features + self.scale.nbytes + bias_bytes(self.bias)

    @property
    def private_bytes(self) -> int:
        return self._packed.numel()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows = x.shape[0]
        q, scale = torch.empty(rows, self.in_features, dtype=torch.uint8), torch.empty(rows)
        y = torch.empty(rows, self.out_features)
        self._library.linear(
            ctypes.byref(self.struct), x.data_ptr(), rows, q.data_ptr(), scale.data_ptr(), y.data_ptr(),
            torch.get_num_threads(),
        )  # fmt: skip
        return y

    def product(self, q: torch.Tensor) -> torch.Tensor:
        """uint8 [rows, in] as `int8.quantize_rows` gives -> float32 [rows, out] without row scales and bias.

        By the calling thread alone.
        """
        q = q.contiguous()
        y = torch.empty(q.shape[0], self.out_features)
        self._library.product(
            q.data_ptr(), q.shape[0], self.in_features, self.out_features,
            self._packed.data_ptr(), self._offset.data_ptr(), self.scale.data_ptr(), y.data_ptr(),
        )  # fmt: skip
        return y
