"""Choosing a token from logits, so that speculation cannot change the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn; the filters apply in this order, as in transformers.

    Attributes:
        temperature: 0 takes the likeliest token, and nothing else matters.
        top_k: only so many likeliest tokens; 0 for all.
        top_p: only the fewest likeliest tokens that together have this probability (nucleus sampling, arXiv
            1904.09751); 1 for all.
        min_p: only tokens with at least this share of the likeliest one's probability (arXiv 2407.01082).
        seed: of the noise.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0


def choose(
    logits: torch.Tensor, first_position: int, sampling: Sampling, depths: Sequence[int] | None = None
) -> list[int]:
    """One token per row.

    Greedy at temperature 0 (the lowest id among equals). Above 0 by the Gumbel-max trick with noise
    that depends on (seed, position) alone: a position's token is the same whether its row came
    alone or within a draft, so accepting a draft token while it equals this choice is lossless.

    Args:
        logits: float32 [rows, vocab]; row i chooses the token at position first_position + i.
            In a tree: at first_position + depths[i].
        first_position: index in the whole sequence, prompt included.
    """
    if sampling.temperature <= 0:
        return logits.argmax(dim=-1).tolist()
    chosen = []
    for row, scores in enumerate(logits):
        position = first_position + (row if depths is None else depths[row])
        noise = gumbel_noise(scores.shape[0], sampling.seed, position).to(scores.device)
        chosen.append(int((filtered(scores, sampling) + noise).argmax()))
    return chosen


def filtered(scores: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """One row of logits [vocab] at the temperature, -inf where a filter takes a token out."""
    scores = scores / sampling.temperature
    if 0 < sampling.top_k < scores.shape[0]:
        least = torch.topk(scores, sampling.top_k).values[-1]
        scores = scores.masked_fill(scores < least, -torch.inf)
    if sampling.top_p < 1.0:
        ordered, order = scores.sort(descending=True, stable=True)
        chances = ordered.softmax(dim=-1)
        # A token stays while those before it have less than top_p together; the first one always does.
        out = order[chances.cumsum(dim=-1) - chances >= max(sampling.top_p, 1e-6)]
        scores = scores.index_fill(0, out, -torch.inf)
    if sampling.min_p > 0.0:
        scores = scores.masked_fill(scores < scores.max() + math.log(sampling.min_p), -torch.inf)
    return scores


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
