"""What the decoder expects of a linear layer."""

from __future__ import annotations

from typing import Protocol

import torch


class Linear(Protocol):
    """y = x @ weight.T + bias.

    The bits of a row of y depend on that row of x alone, not on how many rows come with it or at
    which index the row stands: this is what makes speculative decoding equal to plain decoding.
    """

    @property
    def in_features(self) -> int:
        """Width of x."""

    @property
    def out_features(self) -> int:
        """Width of y."""

    @property
    def weight_bytes(self) -> int:
        """What one call reads at least: weights, scales, bias."""

    @property
    def private_bytes(self) -> int:
        """Memory of the packed weight that no other process shares."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [rows, in] -> float32 [rows, out]."""


def bias_bytes(bias: torch.Tensor | None) -> int:
    """Memory of an optional bias."""
    return 0 if bias is None else bias.nbytes
