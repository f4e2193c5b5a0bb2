"""Norm and activation, computed so that a row's bits do not depend on the rows beside it.

An element-wise kernel of torch runs vector code over most of its range and scalar code over the rest,
and the two round exp() differently. Where the rest lies follows from how the range is divided
among threads, hence from the number of rows. (The other element-wise steps are single
arithmetic operations, which IEEE 754 rounds alike in both codes.)
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

# at::internal::GRAIN_SIZE: ranges are divided among at most ceil(n / GRAIN) threads.
GRAIN = 32768
# Two AVX-512 registers of float32 per turn of the vector loop; half as many with AVX2.
VECTOR = 32


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMSNorm (arXiv 1910.07467) over the last dimension, float32."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def silu_times(gate_up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up, the activation of SwiGLU (arXiv 2002.05202).

    Args:
        gate_up: float32 [rows, 2 * inner], gate first.

    Returns:
        float32 [rows, inner].
    """
    rows, inner = gate_up.shape[0], gate_up.shape[1] // 2
    if gate_up.device.type == "cpu":
        padded = padded_rows(rows, inner, torch.get_num_threads())
        if padded != rows:
            gate_up = F.pad(gate_up, (0, 0, 0, padded - rows))
    # NOTE: gate is a view with gaps between its rows, so the kernel walks it row by row.
    gate, up = gate_up.chunk(2, dim=-1)
    return (F.silu(gate) * up)[:rows]


def padded_rows(rows: int, inner: int, threads: int) -> int:
    """The smallest number of rows, at least ``rows``, that no thread starts inside a vector of a row."""
    while True:
        total = rows * inner
        used = min(threads, -(-total // GRAIN))
        share = -(-total // used)
        if used == 1 or share % inner == 0 or (inner % VECTOR == 0 and share % VECTOR == 0):
            return rows
        rows += 1
