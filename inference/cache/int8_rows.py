"""Keys and values in int8: one scale for each position and key/value head.

Symmetric, per token, the plain scheme that KIVI (arXiv 2402.02750) compares with. KIVI itself scales keys per
channel over groups of tokens; at 2 bits that is needed. Here a row's bits must depend on that row alone, and
appending a row must not change earlier ones, so keys and values are both scaled per token.
"""

from __future__ import annotations

import torch

LEVELS = 127.0


def quantize(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 [..., dim] -> int8 [..., dim] and scales float32 [...].

    Only maxima and element-wise arithmetic: no result depends on the order of a sum.
    """
    peak = rows.abs().amax(dim=-1, keepdim=True).clamp_min_(1e-30)
    quantized = (rows * (LEVELS / peak)).round_().to(torch.int8)
    return quantized, peak.mul_(1.0 / LEVELS).squeeze(-1)


def dequantize(quantized: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """float32 [..., dim]."""
    return quantized.float().mul_(scales.unsqueeze(-1))
