"""What each numerics would cost for the loaded model on this machine, without loading the model in it.

The bytes are exact. The times are estimates: the linear layers alone, with random weights of the model's
shapes, of one layer times the number of layers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from inference.api import Numerics
from inference.errors import DraftlineError
from inference.precision import HEAD, Precision, precision_of
from inference.weights.forms import stored_bytes

if TYPE_CHECKING:
    import torch

    from inference.hardware import Hardware
    from inference.model.config import ModelConfig
    from inference.model.decoder import Weights
    from inference.model.linear.base import Linear
    from inference.model.linear.compiled import CompiledLinear
    from inference.model.linear.int8 import Int8Kernel
    from inference.runtime import Runtime

COMPARED: tuple[Numerics, ...] = ("int8", "nf4", "llm-int8", "bf16", "fp32")
ROWS = (1, 16)

# Larger weights are cut to so many numbers, and their time is scaled: 32 MB in fp32.
MOST_NUMBERS = 1 << 23
# Layers taken by turns, so that a cache does not hold what a whole model reads from memory.
COPIES = 2
REPEATS = 5
SECONDS_EACH = 0.3  # for each numerics and number of rows; the first pass is not counted


@dataclass(frozen=True)
class NumericsCost:
    """One numerics.

    Attributes:
        weight_bytes: of all tensors of the converted form.
        linear_ms: estimated milliseconds of all linear layers by rows; empty if they do not run here.
        reason: why they do not run here, "" if they do.
        loaded: what the loaded model has, without a mix.
    """

    numerics: Numerics
    weight_bytes: int
    linear_ms: dict[int, float]
    reason: str
    loaded: bool


def compare(runtime: Runtime) -> tuple[NumericsCost, ...]:
    """All numerics, for a model that is loaded. Takes a few seconds; call it in inference mode."""
    loaded = precision_of(runtime.options)
    tied = bool(runtime.prepared.config.get("tie_word_embeddings"))
    costs = []
    for numerics in COMPARED:
        bytes_needed = weight_bytes(runtime.config, numerics, tied) + other_bytes(runtime.decoder.weights)
        times: dict[int, float] = {}
        reason = ""
        try:
            times = linear_ms(runtime.config, numerics, runtime.hardware, _compiled(runtime.decoder.weights))
        except DraftlineError as error:
            reason = error.message
        costs.append(NumericsCost(numerics, bytes_needed, times, reason, loaded == Precision(numerics)))
    return tuple(costs)


def layer_shapes(config: ModelConfig) -> tuple[tuple[int, int], ...]:
    """Outputs and inputs of the linear layers of one layer."""
    hidden, inner = config.hidden_size, config.intermediate_size
    mixed = config.n_heads * config.head_dim
    return (
        (mixed + 2 * config.n_kv_heads * config.head_dim, hidden),
        (hidden, mixed),
        (2 * inner, hidden),
        (hidden, inner),
    )


def weight_bytes(config: ModelConfig, numerics: Numerics, tied: bool) -> int:
    """Embedding, head and linear weights with their scales, as `inference.weights.convert` writes them."""
    precision = Precision(numerics)
    vocabulary = (config.vocab_size, config.hidden_size)
    total = config.n_layers * sum(stored_bytes(numerics, shape) for shape in layer_shapes(config))
    total += stored_bytes("fp16" if numerics == "int8" else precision.embedding, vocabulary)
    if not tied or numerics == "int8":
        total += stored_bytes(precision.of(HEAD), vocabulary)
    return total


def other_bytes(weights: Weights) -> int:
    """Norms and biases, which are float32 in every numerics."""
    tensors: list[torch.Tensor | None] = [weights.final_norm]
    for layer in weights.layers:
        tensors += [layer.attn_norm, layer.mlp_norm, layer.q_norm, layer.k_norm]
        linears: tuple[Any, ...] = layer.linears
        tensors += [linear.bias for linear in linears]
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def _compiled(weights: Weights) -> CompiledLinear | None:
    """A layer whose int8 products are compiled functions, if the loaded model has one."""
    from inference.model.linear.compiled import CompiledLinear

    return next((linear for linear in weights.layer_linears if isinstance(linear, CompiledLinear)), None)


def linear_ms(
    config: ModelConfig, numerics: Numerics, hardware: Hardware, compiled: CompiledLinear | None = None
) -> dict[int, float]:
    """Estimated milliseconds of all linear layers of a forward pass, by rows.

    Args:
        compiled: computes int8 products; None for the kernel of ``hardware``.

    Raises:
        UnsupportedNumerics: they do not run on the device of ``hardware``.
    """
    import torch

    from inference.api import EngineConfig
    from inference.hardware import choose_device
    from inference.model.linear.random_weights import random_linear
    from inference.probe.choice import choose_int8_kernel

    device = hardware.device
    choose_device(EngineConfig(numerics=numerics, device=device.type))
    kernel: Int8Kernel | CompiledLinear | None = compiled
    if numerics == "int8" and kernel is None:
        known = hardware.int8_kernel is not None
        kernel = hardware.other_int8_kernel if known else choose_int8_kernel().kernel

    def part(numerics: Numerics, shape: tuple[int, int]) -> tuple[Linear, float]:
        outputs, inputs = shape
        kept = min(outputs, max(64, MOST_NUMBERS // inputs // 64 * 64))
        return random_linear(numerics, kept, inputs, device, kernel), outputs / kept

    layers = [[part(numerics, shape) for shape in layer_shapes(config)] for _ in range(COPIES)]
    head = [part(Precision(numerics).of(HEAD), (config.vocab_size, config.hidden_size))]
    found = {}
    for rows in ROWS:
        widths = {linear.in_features for group in (*layers, head) for linear, _ in group}
        inputs = {width: torch.randn(rows, width, device=device) for width in widths}

        def pass_ms(group: list[tuple[Linear, float]], inputs: dict[int, torch.Tensor] = inputs) -> float:
            return sum(
                factor * _ms(partial(linear, inputs[linear.in_features]), device) for linear, factor in group
            )

        times: list[float] = []
        end = time.perf_counter() + SECONDS_EACH
        for turn in range(COPIES + REPEATS):
            one = config.n_layers * pass_ms(layers[turn % COPIES]) + pass_ms(head)
            # The first pass of each copy builds kernels and touches memory.
            if turn >= COPIES:
                times.append(one)
                if time.perf_counter() > end:
                    break
        found[rows] = statistics.median(times)
    return found


def _ms(run: Callable[[], object], device: torch.device) -> float:
    from inference.model.device import synchronize

    synchronize(device)
    start = time.perf_counter()
    run()
    synchronize(device)
    return (time.perf_counter() - start) * 1000
