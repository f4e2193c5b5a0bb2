"""Numerics epochs: which keys and values may be mixed with which forward passes."""

from __future__ import annotations

from dataclasses import dataclass

from inference.hardware import Hardware
from inference.model.decoder import Decoder
from inference.model.linear import CompiledLinear, Int8Linear
from inference.model.linear.int8 import Int8Kernel


@dataclass(frozen=True)
class NumericsKey:
    """What the bits of keys, values and logits depend on, beside model and prompt.

    Of the int8 kernels only the split one counts: the others all give the exact integer sums.

    Attributes:
        steps: what computes the steps between the linear layers, and whether the products are split ones.
        threads: None where sums are integers; sums of floats may be cut among threads in other ways.
    """

    device: str
    steps: str
    attention_tiles: tuple[int, ...]
    threads: int | None


def numerics_key(decoder: Decoder, hardware: Hardware) -> NumericsKey:
    """Of this decoder on this machine."""
    weights = decoder.weights
    linears = weights.layer_linears
    # Its sums are rounded to float32 in between.
    split = any(getattr(linear, "kernel", None) is Int8Kernel.ONEDNN_SPLIT for linear in linears)
    exact_sums = all(isinstance(linear, (CompiledLinear, Int8Linear)) for linear in [*linears, weights.head])
    return NumericsKey(
        str(decoder.device),
        ("compiled" if decoder.fused else "torch") + (" split" if split else ""),
        hardware.attention_tiles,
        None if exact_sums else hardware.threads,
    )


class Epochs:
    """Numbers numerics. Coming back to earlier ones makes what is left of their caches valid again."""

    def __init__(self) -> None:
        self._numbers: dict[NumericsKey, int] = {}

    def enter(self, key: NumericsKey) -> int:
        """The epoch of these numerics."""
        return self._numbers.setdefault(key, len(self._numbers))
