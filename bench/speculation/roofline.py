"""How fast this machine could be at best, and what forward passes take.

One token cannot be decoded faster than the weights are read, and a prompt not faster than its products are
computed (the roofline model of Williams, Waterman and Patterson, 2009). Both limits are measured in the run,
since they differ from machine to machine and from hour to hour.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from bench.records import Bandwidth, Forward, Prefill
from inference.api import GenerationRequest
from inference.model.decoder import Weights
from inference.model.linear import CompiledLinear, Int8Linear, Linear
from inference.precision import precision_of
from inference.runtime import Runtime

# Larger than any cache.
BUFFER_BYTES = 1 << 29
# Rows, and width and height of the weight. Large and wide: quantising rows and scaling sums shrinks beside
# the product.
INT8_SHAPE = (512, 8192)
FLOAT_SIZE = 2048

CONTEXT = 256  # cached tokens where the number of rows varies


class LinearLayers:
    """The linear layers of a decoder, in the order in which a forward runs them.

    Attributes:
        weights, head_weights: numbers in the weights of all layers but the head, and of the head, which
            sees only rows whose logits are wanted.
        block_bytes, head_bytes: what they read in one pass at least: weights, scales, biases.
    """

    def __init__(self, weights: Weights) -> None:
        blocks = weights.layer_linears
        self._linears = [*blocks, weights.head]
        self._inputs = [linear.in_features for linear in self._linears]
        self.weights = sum(_numbers(linear) for linear in blocks)
        self.head_weights = _numbers(weights.head)
        self.block_bytes = sum(linear.weight_bytes for linear in blocks)
        self.head_bytes = weights.head.weight_bytes

    @property
    def weight_bytes(self) -> int:
        """What one pass reads at least, the head included."""
        return self.block_bytes + self.head_bytes

    def run(self, rows: int) -> Callable[[], None]:
        """A function that runs all of them on ``rows`` random rows."""
        by_width = {width: torch.randn(rows, width) for width in set(self._inputs)}

        def run() -> None:
            for linear, width in zip(self._linears, self._inputs, strict=True):
                linear(by_width[width])

        return run


def measure_bandwidth(runtime: Runtime, passes: int) -> Bandwidth:
    """Read bandwidth, and operations per second of large products; the best of ``passes`` each.

    Reading: the sum over a buffer of 512 MiB, which all threads share; adding is much faster than reading.
    Products: int8 through the kernel that the model's layers use, with the quantisation of its rows; float
    as a float32 product of the BLAS.
    """
    _use_all_threads(runtime)
    with torch.inference_mode():
        return Bandwidth(
            bytes_per_second=_bytes_per_second(passes),
            threads=torch.get_num_threads(),
            int8_ops_per_second=_int8_ops_per_second(runtime, passes),
            float_ops_per_second=_float_ops_per_second(passes),
        )


def forwards(
    runtime: Runtime, system: str, rows: Sequence[int], contexts: Sequence[int], repeats: int
) -> Iterator[Forward]:
    """Forward passes of all ``rows`` behind ``CONTEXT`` tokens and of one row behind each of ``contexts``.

    Shapes that the model's context does not hold are left out.
    """
    _use_all_threads(runtime)
    linears = LinearLayers(runtime.decoder.weights)
    wanted = dict.fromkeys([*((count, CONTEXT) for count in rows), *((1, context) for context in contexts)])
    shapes = [(count, context) for count, context in wanted if count + context <= runtime.context]
    if not shapes:
        return
    slot = runtime.decoder.new_slot(max(count + context for count, context in shapes))
    # Reading random keys and values takes as long as reading real ones.
    shape = (2, slot.capacity, runtime.config.n_kv_heads, runtime.config.head_dim)
    for layer in range(runtime.config.n_layers):
        slot.store(layer, 0, *torch.randn(shape))
    tokens = random_tokens(runtime, slot.capacity)
    alone = {count: linears.run(count) for count in {count for count, _ in shapes}}
    # The first pass of a shape builds kernels; it is not recorded.
    for repeat in range(-1, repeats):
        for count, context in shapes:
            slot.tokens[:] = tokens[:context]
            with torch.inference_mode():
                ms = _ms(lambda: runtime.decoder.forward(tokens[:count], slot))  # noqa: B023
                linear_ms = _ms(alone[count])
            if repeat >= 0:
                yield Forward(
                    system=system,
                    numerics=str(precision_of(runtime.options)),
                    rows=count,
                    context=context,
                    repeat=repeat,
                    ms=ms,
                    linear_ms=linear_ms,
                    weight_bytes=linears.weight_bytes,
                )


def prefills(runtime: Runtime, system: str, lengths: Sequence[int], repeats: int) -> Iterator[Prefill]:
    """Prompts of some lengths, read from nothing in the blocks that the product uses.

    ``weight_bytes`` are those read for the whole prompt: once for each block, the head once.
    Lengths that the model's context does not hold are left out.
    """
    linears = LinearLayers(runtime.decoder.weights)
    for repeat in range(repeats):
        for length in lengths:
            if length >= runtime.context:
                continue
            prompt = tuple(random_tokens(runtime, length))
            request = GenerationRequest(prompt, max_new_tokens=1, draft="none", use_cache=False)
            start = time.perf_counter()
            outcome = runtime.run(request, lambda chunk: None, lambda: None)
            blocks = -(-length // runtime.options.prefill_chunk)
            yield Prefill(
                system=system,
                numerics=str(precision_of(runtime.options)),
                tokens=length,
                repeat=repeat,
                ms=(outcome.prompt_done - start) * 1000,
                weight_bytes=blocks * linears.block_bytes + linears.head_bytes,
                linear_ops=2.0 * (length * linears.weights + linears.head_weights),
            )


def random_tokens(runtime: Runtime, count: int) -> list[int]:
    """The same ids every time; what they say is of no matter where only time or memory is measured."""
    return random.Random(count).choices(range(runtime.config.vocab_size), k=count)


def _use_all_threads(runtime: Runtime) -> None:
    # The governor may have given way to another process during the calls before.
    torch.set_num_threads(runtime.hardware.threads)


def _bytes_per_second(passes: int) -> float:
    buffer = torch.ones(BUFFER_BYTES // 4)
    return BUFFER_BYTES / _best_seconds(buffer.sum, passes)


def _float_ops_per_second(passes: int) -> float:
    a, b = torch.randn(2, FLOAT_SIZE, FLOAT_SIZE)
    return 2 * FLOAT_SIZE**3 / _best_seconds(lambda: a @ b, passes)


def _int8_ops_per_second(runtime: Runtime, passes: int) -> float | None:
    kernel = runtime.hardware.int8_kernel
    if kernel is None:
        return None
    rows, size = INT8_SHAPE
    weight, scale = torch.ones(size, size, dtype=torch.int8), torch.ones(size)
    used = runtime.decoder.weights.head
    linear: Linear
    if isinstance(used, CompiledLinear):
        linear = used.like(weight, scale)
    else:
        linear = Int8Linear(weight, scale, None, kernel)
    x = torch.randn(rows, size)
    return 2 * rows * size * size / _best_seconds(lambda: linear(x), passes)


def _best_seconds(run: Callable[[], object], passes: int) -> float:
    run()  # builds kernels, touches memory
    return min(_ms(run) for _ in range(passes)) / 1000


def _ms(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1000


def _numbers(linear: Linear) -> int:
    return linear.out_features * linear.in_features
