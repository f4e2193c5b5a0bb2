"""Where the time of a forward pass goes: its parts run alone, in all layers, beside the pass itself.

The parts are the model's own objects, called as a pass calls them. Alone a part finds the caches in another
state than within a pass, so the sum of the parts is near the whole and not equal to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from bench.records import Part
from bench.speculation.between import ATTENTION, steps_between
from bench.speculation.roofline import random_tokens
from inference.cache.kv import KvSlot
from inference.model.config import ModelConfig
from inference.model.linear import DenseLinear, Int8Linear, Linear
from inference.runtime import Runtime

WHOLE = "whole"
LINEARS = ("qkv", "out", "gate_up", "down")
HEAD = "head"


class _Timed(NamedTuple):
    """A part: what runs it, and what it must read and compute at least."""

    name: str
    run: Callable[[], object]
    bytes: int | None = None
    ops: float | None = None


def breakdown(
    runtime: Runtime, system: str, rows: Sequence[int], context: int, prefill: int, repeats: int
) -> Iterator[Part]:
    """The parts of passes of each of ``rows`` behind ``context`` tokens, and of ``prefill`` rows behind none.

    Of a block of a prompt only the last row passes through the head. Shapes that the model's context does not
    hold are left out. Interleaved over shapes and parts.
    """
    torch.set_num_threads(runtime.hardware.threads)
    shapes = [*((count, context, count) for count in rows), (prefill, 0, 1)]
    shapes = [shape for shape in shapes if shape[0] + shape[1] <= runtime.context]
    if not shapes:
        return
    slot = runtime.decoder.new_slot(max(count + behind for count, behind, _ in shapes))
    tokens = random_tokens(runtime, slot.capacity)
    with torch.inference_mode():
        # Real keys and values: a slot may hold them in any form.
        filled = max(behind for _, behind, _ in shapes)
        for start in range(0, filled, runtime.options.prefill_chunk):
            stop = min(start + runtime.options.prefill_chunk, filled)
            runtime.decoder.forward(tokens[start:stop], slot, None)
        parts = {shape: _parts(runtime, slot, tokens, *shape) for shape in shapes}
    # The first pass of a shape builds kernels; it is not recorded.
    for repeat in range(-1, repeats):
        for (count, behind, _), timed in parts.items():
            for part in timed:
                # Not around the loop: the mode would stay on while nobody asks for the next part.
                with torch.inference_mode():
                    start_s = time.perf_counter()
                    part.run()
                    ms = (time.perf_counter() - start_s) * 1000
                if repeat >= 0:
                    yield Part(
                        system=system,
                        numerics=runtime.options.numerics,
                        name=part.name,
                        rows=count,
                        context=behind,
                        repeat=repeat,
                        ms=ms,
                        bytes=part.bytes,
                        ops=part.ops,
                    )


def _parts(
    runtime: Runtime, slot: KvSlot, tokens: Sequence[int], rows: int, context: int, head_rows: int
) -> list[_Timed]:
    decoder, config = runtime.decoder, runtime.config
    before, block = list(tokens[:context]), list(tokens[context : context + rows])

    def whole() -> None:
        slot.tokens[:] = before
        decoder.forward(block, slot, rows - head_rows)

    found = [_Timed(WHOLE, whole)]
    for name in LINEARS:
        linears = [getattr(layer, name) for layer in decoder.weights.layers]
        found.append(_linears(name, linears, rows, products=decoder.fused))
    found.append(_linears(HEAD, [decoder.weights.head], head_rows, products=False))
    between = steps_between(decoder, runtime.hardware.attention_tiles, rows, context)
    for name, run in between.items():
        found.append(_Timed(name, run, *(_attention(config, rows, context) if name == ATTENTION else ())))
    return found


def _linears(name: str, linears: Sequence[Linear], rows: int, products: bool) -> _Timed:
    """One kind of linear layer.

    Args:
        products: the compiled steps have quantised the rows already.
    """
    sizes = [_size(linear) for linear in linears]
    calls: list[Callable[[torch.Tensor], torch.Tensor]] = [
        linear.product if products and isinstance(linear, Int8Linear) else linear for linear in linears
    ]
    x = torch.randn(rows, sizes[0][1])
    if products and all(isinstance(linear, Int8Linear) for linear in linears):
        x = torch.randint(1, 256, x.shape, dtype=torch.uint8)

    def run() -> None:
        for call in calls:
            call(x)

    numbers = sum(outputs * inputs for outputs, inputs, _ in sizes)
    return _Timed(name, run, sum(read for *_, read in sizes), 2.0 * rows * numbers)


def _size(linear: Linear) -> tuple[int, int, int]:
    """Outputs, inputs, and bytes of the weight."""
    if isinstance(linear, DenseLinear):
        outputs, inputs = linear.weight.shape
        return outputs, inputs, linear.weight.nbytes
    sized: Any = linear
    outputs, inputs = sized.out_features, sized.in_features
    return outputs, inputs, linear.private_bytes or outputs * inputs


def _attention(config: ModelConfig, rows: int, context: int) -> tuple[int, float]:
    """Bytes of the keys and values, and operations of both products, in float32 and in all layers."""
    seen = sum(context + row + 1 for row in range(rows))
    width = config.n_kv_heads * config.head_dim
    read = config.n_layers * 2 * 4 * width * (context + rows)
    return read, 4.0 * config.n_layers * config.n_heads * config.head_dim * seen
