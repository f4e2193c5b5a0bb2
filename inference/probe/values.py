"""Does a kernel return exactly what integer sums give?"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache

import torch

from inference.model.linear.int8 import FLOAT_BLOCK, quantize_rows
from inference.probe.candidates import Candidate, GetLibrary, Product

# Outputs and inputs: more than one block of exact float32 sums, and a width that no vector divides.
_SHAPES = ((512, FLOAT_BLOCK + 128), (96, 160))
_ROWS = (1, 2, 5, 33)
# A reference implementation takes some hundred times as long. One slow call alone may be a busy core.
SLOW_CALL_S = 0.02
_TRIES = 3

# What a kernel that is missing or half there may raise.
FAILURES = (RuntimeError, AttributeError, NotImplementedError, OSError, MemoryError)


def exact_product(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """What an int8 kernel must return: integers summed exactly, then scaled in float32.

    Args:
        x: float32 [rows, in].
        weight: int8 [out, in].
        scale: float32 [out].
    """
    q, row_scale = quantize_rows(x)
    total = torch.zeros(x.shape[0], weight.shape[0], dtype=torch.float64)
    signed = q.float() - 128.0
    for start in range(0, weight.shape[1], FLOAT_BLOCK):
        part = slice(start, start + FLOAT_BLOCK)
        total += signed[:, part] @ weight[:, part].float().t()
    return total.float().mul_(scale).mul_(row_scale)


def fault(
    candidate: Candidate, library: GetLibrary = None, clock: Callable[[], float] = time.perf_counter
) -> str:
    """What is wrong with a kernel's values, "" if nothing. Some milliseconds."""
    if not candidate.available(library):
        return "not here"
    try:
        for weight, scale, x, right in _cases():
            product = candidate.build(weight, scale, library)
            if _slow(product, x[:1], clock):
                return "too slow to be checked"
            if not all(torch.equal(product(x[:rows]), right[:rows]) for rows in _ROWS):
                return "wrong values"
    except FAILURES as error:
        return f"did not run: {(str(error).splitlines() or [type(error).__name__])[0]}"
    return ""


def _slow(product: Product, x: torch.Tensor, clock: Callable[[], float]) -> bool:
    for _ in range(_TRIES):
        start = clock()
        product(x)
        if clock() - start <= SLOW_CALL_S:
            return False
    return True


@lru_cache(maxsize=1)
def _cases() -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Weights, scales, inputs and right results."""
    generator = torch.Generator().manual_seed(7)
    cases = []
    for outputs, inputs in _SHAPES:
        weight = torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8, generator=generator)
        # Long runs of one sign and full range: what saturating 16-bit sums get wrong.
        weight[: outputs // 4] = weight[: outputs // 4].abs()
        x = torch.randn(max(_ROWS), inputs, generator=generator)
        x[::2] = x[::2].abs()
        scale = torch.rand(outputs, generator=generator) * 0.01 + 0.001
        cases.append((weight, scale, x, exact_product(x, weight, scale)))
    return cases
