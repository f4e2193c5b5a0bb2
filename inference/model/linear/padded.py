"""A linear layer that is always called with one number of rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from inference.model.linear.base import Linear


class PaddedLinear:
    """Calls another layer with tiles of ``tile`` rows, the last one padded with zeros.

    For devices on which the bits of a product depend on its shape.
    """

    def __init__(self, linear: Linear, tile: int) -> None:
        self.linear, self.tile = linear, tile

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [rows, in] -> float32 [rows, out]."""
        rows = x.shape[0]
        x = F.pad(x, (0, 0, 0, -rows % self.tile))
        tiles = [self.linear(x[i : i + self.tile]) for i in range(0, x.shape[0], self.tile)]
        return (tiles[0] if len(tiles) == 1 else torch.cat(tiles))[:rows]
