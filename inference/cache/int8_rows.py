"""Keys and values in int8, symmetric, with float32 scales for each position and key/value head.

KIVI (arXiv 2402.02750) scales keys per channel over many tokens, because some channels of keys are tens of
times larger than others. Here a row's bits must depend on that row alone, and appending a row must not change
earlier ones. So both are scaled per token: values with one scale, keys with one for each `KEY_GROUP`
channels, which keeps large channels from drowning all others. (One scale for a whole key cost
Qwen2.5-Coder-0.5B 1.5 % of perplexity.)
"""

from __future__ import annotations

import torch

LEVELS = 127.0
KEY_GROUP = 16


def key_group(dim: int) -> int:
    """Channels of a key that share a scale."""
    return KEY_GROUP if dim % KEY_GROUP == 0 else dim


def quantize(rows: torch.Tensor, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 [..., dim] -> int8 [..., dim] and scales float32 [..., dim / group].

    Only maxima and element-wise arithmetic: no result depends on the order of a sum.
    """
    grouped = rows.reshape(*rows.shape[:-1], -1, group)
    peak = grouped.abs().amax(dim=-1, keepdim=True).clamp_min_(1e-30)
    quantized = (grouped * (LEVELS / peak)).round_().to(torch.int8)
    return quantized.flatten(-2), peak.mul_(1.0 / LEVELS).squeeze(-1)


def dequantize(quantized: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """float32 [..., dim]."""
    grouped = quantized.float().view(*scales.shape, -1)
    return grouped.mul_(scales.unsqueeze(-1)).flatten(-2)
