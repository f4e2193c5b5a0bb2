"""From a converted model on disk to a decoder ready to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from inference.api import KvNumerics
from inference.errors import CorruptFile, NotEnoughMemory
from inference.hardware import Hardware
from inference.model.config import ModelConfig
from inference.model.decoder import Decoder, Weights
from inference.model.fused.check import fault, product_fault
from inference.model.fused.compiler import NoCompiler
from inference.model.fused.huge_pages import Arena
from inference.model.fused.library import Library
from inference.model.fused.stack import supports
from inference.model.layers import Layer
from inference.model.linear import (
    CompiledLinear,
    DenseLinear,
    Int8Linear,
    Linear,
    LlmInt8Linear,
    Nf4Linear,
)
from inference.model.linear.compiled import fits
from inference.model.linear.int8 import Int8Kernel
from inference.model.linear.short_head import ShortHead
from inference.weights.pages import drop_pages


def load_decoder(
    weights_file: Path,
    config: ModelConfig,
    hardware: Hardware,
    max_positions: int,
    on_fraction: Callable[[float], None] = lambda fraction: None,
    library: Callable[[], Library] | None = None,
    kv: KvNumerics = "fp32",
    short_head: Sequence[int] | None = None,
) -> Decoder:
    """Map the file and pack its linear layers.

    Args:
        weights_file: safetensors with the fused names of `inference.weights.layout`.
        max_positions: longest context that will be asked for, in tokens.
        on_fraction: told how far packing has come, 0 .. 1.
        library: gives the compiled functions, None to use torch's.
        kv: how the decoder's slots store keys and values.
        short_head: control tokens, for a decoder that only guesses: its logits are those of a `ShortHead`
            where that pays. None for all logits.

    Raises:
        CorruptFile: a tensor is missing or the file does not open.
        NotEnoughMemory: the packed copies do not fit.
    """
    functions, note = _functions(hardware, library)
    try:
        with safe_open(weights_file, framework="pt") as file:
            reader = _Reader(file, hardware, functions)
            layers = []
            for index in range(config.n_layers):
                layers.append(_layer(reader, index))
                on_fraction((index + 1) / (config.n_layers + 2))
            embed = reader.tensor("embed.weight")
            head = reader.head(embed, short_head)
            weights = Weights(embed, tuple(layers), reader.tensor("final_norm.weight"), head)
    except (KeyError, OSError, SafetensorError) as error:
        raise CorruptFile(
            f"{weights_file} is damaged: {error}",
            f"Delete {weights_file.parent}; it is made again at the next start.",
        ) from error
    except (MemoryError, RuntimeError) as error:
        if "alloc" not in str(error) and not isinstance(error, MemoryError):
            raise
        raise NotEnoughMemory(
            f"Packing {weights_file.parent.name} ran out of memory.",
            "Close programs or choose a smaller model.",
        ) from error
    on_fraction(1.0)
    if functions is not None:
        note = _misfit(config, weights, hardware, functions, kv)
    steps = None if note else functions
    return Decoder(config, weights, max_positions, hardware.device, hardware.attention_tiles, steps, note, kv)


def _functions(hardware: Hardware, library: Callable[[], Library] | None) -> tuple[Library | None, str]:
    """The compiled functions, or None and the reason why torch's are used."""
    if library is None:
        return None, "not asked for"
    if hardware.device.type != "cpu":
        return None, "they run on the CPU only"
    try:
        functions = library()
    except NoCompiler as error:
        return None, str(error)
    if not functions.usable(hardware.threads):
        return None, "the C compiler has no threads in common with torch"
    if hardware.int8_kernel is not Int8Kernel.COMPILED:
        return None, "other products are faster on this machine, or these are wrong"
    try:
        wrong = product_fault(functions)
    except MemoryError:
        wrong = "there is no memory to check them"
    return (None, wrong) if wrong else (functions, "")


def _misfit(
    config: ModelConfig, weights: Weights, hardware: Hardware, functions: Library, kv: KvNumerics
) -> str:
    """Why the steps between the linear layers cannot be compiled ones; empty if they can."""
    if not supports(config, weights.layers):
        return "they lack something that this model or its numerics need"
    return fault(config, weights.layers, functions, hardware.attention_tiles, kv) or ""


def _layer(reader: _Reader, index: int) -> Layer:
    prefix = f"layers.{index}."
    return Layer(
        attn_norm=reader.tensor(prefix + "attn_norm.weight"),
        qkv=reader.linear(prefix + "attn.qkv"),
        q_norm=reader.optional(prefix + "attn.q_norm.weight"),
        k_norm=reader.optional(prefix + "attn.k_norm.weight"),
        out=reader.linear(prefix + "attn.out"),
        mlp_norm=reader.tensor(prefix + "mlp_norm.weight"),
        gate_up=reader.linear(prefix + "mlp.gate_up"),
        down=reader.linear(prefix + "mlp.down"),
    )


class _Reader:
    """Tensors by name, on the right device, as layers of the right kind."""

    def __init__(self, file: Any, hardware: Hardware, functions: Library | None) -> None:
        self._file = file
        self._functions = functions
        self._arena = Arena()
        self._names = set(file.keys())
        self._hardware = hardware

    def has(self, name: str) -> bool:
        return name in self._names

    def tensor(self, name: str) -> torch.Tensor:
        tensor: torch.Tensor = self._file.get_tensor(name)
        return tensor.to(self._hardware.device)

    def optional(self, name: str) -> torch.Tensor | None:
        return self.tensor(name) if name in self._names else None

    def linear(self, name: str) -> Linear:
        """The numerics follow from what stands beside the weight, see `inference.weights.forms`."""
        weight = self.tensor(name + ".weight")
        linear = self._packed(name, weight, self.optional(name + ".bias"))
        if linear.private_bytes:
            drop_pages(weight)  # packed: half a gigabyte that nobody reads again
        return linear

    def head(self, embed: torch.Tensor, short: Sequence[int] | None) -> Linear:
        """The output head; the embedding is one too where the file has no other."""
        own = self.has("head.weight")
        weight = self.tensor("head.weight") if own else embed
        plain = not (self.has("head.nf4_absmax") or self.has("head.llm_int8_absmax") or self.has("head.bias"))
        if short is not None and plain and weight.device.type == "cpu" and ShortHead.pays(weight.shape[0]):
            scale = self.tensor("head.scale") if weight.dtype is torch.int8 else None
            return ShortHead(weight, scale, short, lambda rows: self._some(weight, scale, rows))
        return self.linear("head") if own else DenseLinear(embed)

    def _some(self, weight: torch.Tensor, scale: torch.Tensor | None, rows: torch.Tensor) -> Linear:
        """A layer of some rows of a weight."""
        return self._layer_of(weight[rows], None if scale is None else scale[rows], None)

    def _packed(self, name: str, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
        if self.has(name + ".nf4_absmax"):
            return Nf4Linear(weight, self.tensor(name + ".nf4_absmax"), bias)
        if self.has(name + ".llm_int8_absmax"):
            return LlmInt8Linear(weight, self.tensor(name + ".llm_int8_absmax"), bias)
        return self._layer_of(weight, self.optional(name + ".scale"), bias)

    def _layer_of(
        self, weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None
    ) -> Linear:
        if weight.dtype is not torch.int8:
            return DenseLinear(weight, bias)
        if scale is None:
            raise KeyError("an int8 weight has no scales")
        assert self._hardware.int8_kernel is not None
        if self._functions is not None and fits(weight):
            return CompiledLinear(weight, scale, bias, self._functions, self._arena)
        return Int8Linear(weight, scale, bias, self._hardware.other_int8_kernel)
