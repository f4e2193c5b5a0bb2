"""Choosing a token from logits, so that speculation cannot change the choice."""

from __future__ import annotations

import torch

_MASK = (1 << 64) - 1


def choose(logits: torch.Tensor, first_position: int, temperature: float, seed: int) -> list[int]:
    """One token per row.

    Greedy at temperature 0 (the lowest id among equals). Above 0 by the Gumbel-max trick with noise
    that depends on (seed, position) alone: a position's token is the same whether its row came
    alone or within a draft, so accepting a draft token while it equals this choice is lossless.

    Args:
        logits: float32 [rows, vocab]; row i chooses the token at position first_position + i.
        first_position: index in the whole sequence, prompt included.
    """
    if temperature <= 0:
        return logits.argmax(dim=-1).tolist()
    chosen = []
    for row, scores in enumerate(logits):
        noise = gumbel_noise(scores.shape[0], seed, first_position + row).to(scores.device)
        chosen.append(int((scores / temperature + noise).argmax()))
    return chosen


def gumbel_noise(size: int, seed: int, position: int) -> torch.Tensor:
    """Standard Gumbel noise, float32 [size], a pure function of its arguments."""
    generator = torch.Generator().manual_seed(_mix(seed, position))
    return torch.empty(size).exponential_(generator=generator).log_().neg_()


def _mix(seed: int, position: int) -> int:
    # splitmix64 (Steele et al., OOPSLA 2014): neighbouring positions must not give related streams.
    z = ((seed & _MASK) * 0x9E3779B97F4A7C15 + (position + 1) * 0xD1B54A32D192ED03) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
