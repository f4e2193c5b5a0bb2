"""Rotary position embedding: frequencies of each variant, one table for all positions."""

from __future__ import annotations

import math

import torch

from inference.model.config import ModelConfig


def inverse_frequencies(config: ModelConfig) -> tuple[torch.Tensor, float]:
    """Angular frequency per pair of dimensions, float32 [head_dim / 2], and the attention factor.

    Sources: RoFormer (arXiv 2104.09864); linear interpolation (arXiv 2306.15595); the "llama3"
    rule of Llama 3.1; YaRN (arXiv 2309.00071).
    """
    rope, dim = config.rope, config.head_dim
    exponent = torch.arange(0, dim, 2, dtype=torch.int64).float() / dim
    inv = 1.0 / (rope.theta**exponent)
    scaling = rope.scaling
    if rope.kind == "linear":
        return inv / float(scaling["factor"]), 1.0
    if rope.kind == "llama3":
        return _llama3(inv, scaling), 1.0
    if rope.kind == "yarn":
        return _yarn(inv, scaling, rope.theta, dim)
    return inv, 1.0


def _llama3(inv: torch.Tensor, scaling: dict[str, float]) -> torch.Tensor:
    factor = float(scaling["factor"])
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    original = float(scaling["original_max_position_embeddings"])
    wavelength = 2 * math.pi / inv
    smooth = (original / wavelength - low) / (high - low)
    blended = (1 - smooth) * inv / factor + smooth * inv
    scaled = torch.where(wavelength > original / low, inv / factor, inv)
    medium = (wavelength <= original / low) & (wavelength >= original / high)
    return torch.where(medium, blended, scaled)


def _yarn(inv: torch.Tensor, scaling: dict[str, float], theta: float, dim: int) -> tuple[torch.Tensor, float]:
    factor = float(scaling["factor"])
    original = float(scaling["original_max_position_embeddings"])

    def correction(rotations: float) -> float:
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(correction(float(scaling.get("beta_fast") or 32))), 0)
    high = min(math.ceil(correction(float(scaling.get("beta_slow") or 1))), dim - 1)
    ramp = (torch.arange(dim // 2).float() - low) / max(high - low, 0.001)
    keep = 1 - ramp.clamp(0, 1)
    attention = scaling.get("attention_factor")
    attention = float(attention) if attention else 0.1 * math.log(factor) + 1.0
    return inv / factor * (1 - keep) + inv * keep, attention


class RopeTable:
    """cos and sin for positions 0 .. length-1, float32 [length, head_dim] each.

    One table, computed once: the bits of a rotation then depend on the position alone.
    ``sin`` carries the sign of the rotate-half form: x * cos + swap_halves(x) * sin.
    """

    def __init__(self, config: ModelConfig, length: int, device: torch.device) -> None:
        inv, attention = inverse_frequencies(config)
        angles = torch.arange(length, dtype=torch.float32)[:, None] * inv[None, :]
        # In float64, then rounded: vector and scalar code differ in the last bit of a float32 cosine,
        # and which of them computes a position depends on the length of the table.
        cos = (angles.double().cos() * attention).float()
        sin = (angles.double().sin() * attention).float()
        self.cos = torch.cat((cos, cos), dim=-1).to(device)
        self.sin = torch.cat((-sin, sin), dim=-1).to(device)

    def rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Rotate x [rows, heads, head_dim] by cos, sin [rows, 1, head_dim]."""
        half = x.shape[-1] // 2
        return x * cos + x.roll(half, dims=-1) * sin
