"""The int8 kernels that may be chosen. A new kernel is one more entry of ``CANDIDATES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from inference.model.fused.compiler import NoCompiler
from inference.model.fused.huge_pages import Arena
from inference.model.fused.library import Library
from inference.model.linear.compiled import CompiledLinear
from inference.model.linear.int8 import Int8Kernel, Int8Linear

# Rows of the forwards that matter, and about how many of each one answer takes: plain steps, short and long
# drafts, the widest draft, a chunk of the prompt.
FORWARDS = {1: 8, 8: 6, 16: 3, 32: 1, 128: 1}
WIDTHS = tuple(FORWARDS)

# float32 [rows, in] -> float32 [rows, out]
Product = Callable[[torch.Tensor], torch.Tensor]
# Gives the compiled functions (waiting for the compiler, and raising NoCompiler); None: not wanted.
GetLibrary = Callable[[], Library] | None


@dataclass(frozen=True)
class Candidate:
    """One way to compute the int8 product.

    Attributes:
        build: packs a weight, int8 [out, in], with its scales, float32 [out], and gives the product.
        available: whether this build of torch, or the library, has it at all. Must not raise.
        widths: the rows it is meant for. Only a kernel for all of ``WIDTHS`` can be the only one.
    """

    kernel: Int8Kernel
    build: Callable[[torch.Tensor, torch.Tensor, GetLibrary], Product]
    available: Callable[[GetLibrary], bool]
    widths: tuple[int, ...] = WIDTHS

    @property
    def name(self) -> str:
        """Of the kernel, as users see it."""
        return self.kernel.value


def _linear(kernel: Int8Kernel) -> Callable[[torch.Tensor, torch.Tensor, GetLibrary], Product]:
    return lambda weight, scale, library: Int8Linear(weight, scale, None, kernel)


def _compiled(weight: torch.Tensor, scale: torch.Tensor, library: GetLibrary) -> Product:
    assert library is not None
    return CompiledLinear(weight, scale, None, library(), Arena(0))


def _has_compiled(library: GetLibrary) -> bool:
    try:
        return library is not None and library().usable(torch.get_num_threads())
    except NoCompiler:
        return False


def _has_onednn(library: GetLibrary) -> bool:
    return hasattr(torch.ops.onednn, "qlinear_prepack") and hasattr(torch.ops.onednn, "qlinear_pointwise")


def _always(library: GetLibrary) -> bool:
    return True


# Of two that are equally fast the first is taken. The last one is right on every processor.
CANDIDATES: tuple[Candidate, ...] = (
    Candidate(Int8Kernel.COMPILED, _compiled, _has_compiled),
    Candidate(Int8Kernel.ONEDNN, _linear(Int8Kernel.ONEDNN), _has_onednn),
    Candidate(Int8Kernel.ONEDNN_SPLIT, _linear(Int8Kernel.ONEDNN_SPLIT), _has_onednn),
    Candidate(Int8Kernel.FLOAT, _linear(Int8Kernel.FLOAT), _always),
)
