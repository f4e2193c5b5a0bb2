"""Where the time of a forward pass goes: its parts run alone, in all layers, beside the pass itself.

The compiled layers measure their own steps within the pass. Elsewhere, and for the output head, parts are the
model's own objects, called as a pass calls them: alone a part finds the caches in another state than within a
pass, so the sum of the parts is near the whole and not equal to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from bench.records import Part
from bench.speculation.between import ATTENTION, ROW_STEPS, steps_between
from bench.speculation.roofline import random_tokens
from inference.cache.kv import KvSlot
from inference.model.config import ModelConfig
from inference.model.fused.stack import STEPS
from inference.model.linear import Linear
from inference.precision import precision_of
from inference.runtime import Runtime

WHOLE = "whole"
LINEARS = ("qkv", "out", "gate_up", "down")
HEAD = "head"


class _Timed(NamedTuple):
    """A part: what runs it, and what it must read and compute at least.

    ``measured`` gives the milliseconds that the last whole pass measured for it; nothing is run then.
    """

    name: str
    run: Callable[[], object]
    bytes: int | None = None
    ops: float | None = None
    measured: Callable[[], float] | None = None


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
                    ms = part.measured() if part.measured else (time.perf_counter() - start_s) * 1000
                if repeat >= 0:
                    yield Part(
                        system=system,
                        numerics=str(precision_of(runtime.options)),
                        name=part.name,
                        rows=count,
                        context=behind,
                        repeat=repeat,
                        ms=ms,
                        bytes=part.bytes,
                        ops=part.ops,
                    )
    if runtime.decoder.fused:
        runtime.decoder.measure_steps(None)


def _parts(
    runtime: Runtime, slot: KvSlot, tokens: Sequence[int], rows: int, context: int, head_rows: int
) -> list[_Timed]:
    decoder, config = runtime.decoder, runtime.config
    before, block = list(tokens[:context]), list(tokens[context : context + rows])

    laps = torch.zeros(len(STEPS), dtype=torch.float64)

    def whole() -> None:
        slot.tokens[:] = before
        if decoder.fused:
            decoder.measure_steps(laps.zero_())
        decoder.forward(block, slot, rows - head_rows)

    def measured(*steps: str) -> Callable[[], float]:
        return lambda: sum(float(laps[STEPS.index(step)]) for step in steps) * 1000

    found = [_Timed(WHOLE, whole)]
    for name in LINEARS:
        part = _linears(name, [getattr(layer, name) for layer in decoder.weights.layers], rows)
        found.append(part._replace(run=_nothing, measured=measured(name)) if decoder.fused else part)
    found.append(_linears(HEAD, [decoder.weights.head], head_rows))
    read, ops = _attention(config, rows, context)
    if decoder.fused:
        others = [step for step in STEPS if step not in (*LINEARS, ATTENTION)]
        found.append(_Timed(ATTENTION, _nothing, read, ops, measured(ATTENTION)))
        found.append(_Timed(ROW_STEPS, _nothing, measured=measured(*others)))
        return found
    between = steps_between(config, runtime.hardware.attention_tiles, rows, context)
    for name, run in between.items():
        found.append(_Timed(name, run, *((read, ops) if name == ATTENTION else ())))
    return found


def _nothing() -> None:
    """It was measured within the whole pass."""


def _linears(name: str, linears: Sequence[Linear], rows: int) -> _Timed:
    """One kind of linear layer."""
    sizes = [_size(linear) for linear in linears]
    x = torch.randn(rows, sizes[0][1])

    def run() -> None:
        for linear in linears:
            linear(x)

    numbers = sum(outputs * inputs for outputs, inputs, _ in sizes)
    return _Timed(name, run, sum(read for *_, read in sizes), 2.0 * rows * numbers)


def _size(linear: Linear) -> tuple[int, int, int]:
    """Outputs, inputs, and bytes that one pass reads."""
    return linear.out_features, linear.in_features, linear.weight_bytes


def _attention(config: ModelConfig, rows: int, context: int) -> tuple[int, float]:
    """Bytes of the keys and values, and operations of both products, in float32 and in all layers."""
    seen = sum(context + row + 1 for row in range(rows))
    width = config.n_kv_heads * config.head_dim
    read = config.n_layers * 2 * 4 * width * (context + rows)
    return read, 4.0 * config.n_layers * config.n_heads * config.head_dim * seen
