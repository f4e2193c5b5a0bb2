"""The compiled integer products: exact with every set of instructions, and the same bits as torch's."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
import torch

from inference.model.fused import check, compiler
from inference.model.fused.check import product_fault
from inference.model.fused.compiler import NoCompiler
from inference.model.fused.huge_pages import Arena
from inference.model.fused.library import Library
from inference.model.linear.compiled import CompiledLinear, fits
from inference.model.linear.int8 import Int8Kernel, Int8Linear

try:
    COMPILER: list[str] = compiler._find()
except NoCompiler:
    COMPILER = []
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C compiler on this machine")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("home")))
        return compiler.load()


def built_for(flags: list[str], place: Path) -> Library:
    """The library with other instructions than this processor's best."""
    sources = [str(Path(compiler.__file__).parent / name) for name in compiler._SOURCES]
    out = place / "other.so"
    command = [*COMPILER, *compiler._FLAGS, *flags, "-shared", *sources, "-o", str(out), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return Library(out)


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86")
@pytest.mark.parametrize("flags", [["-mavx2", "-mfma"], ["-mfma", "-mno-avx2"]])
def test_older_processors(flags: list[str], tmp_path: Path) -> None:
    if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("this processor has no AVX2")
    assert product_fault(built_for(flags, tmp_path)) is None


@needs_compiler
def test_the_check_finds_a_wrong_product(library: Library) -> None:
    assert product_fault(library) is None
    odd = Library.__new__(Library)
    odd.__dict__.update(library.__dict__)

    def broken(q: int, rows: int, *rest: int) -> None:
        library.product(q, max(rows - 1, 1), *rest)  # the last row of a block is left out

    odd.product = broken
    assert check.product_fault(odd) is not None


@needs_compiler
@pytest.mark.parametrize("size", [(96, 896), (50, 1340), (1, 4)])
@pytest.mark.parametrize("biased", [False, True])
def test_same_bits_as_the_other_kernels(library: Library, size: tuple[int, int], biased: bool) -> None:
    outputs, inputs = size
    weight = torch.randint(-127, 128, size, dtype=torch.int8)
    scale, bias = torch.rand(outputs), torch.randn(outputs) if biased else None
    compiled = CompiledLinear(weight, scale, bias, library, Arena())
    other = Int8Linear(weight, scale, bias, Int8Kernel.FLOAT)
    x = torch.randn(37, inputs)
    right = other(x)
    assert torch.equal(compiled(x), right)
    for rows in (1, 14, 15, 29):
        assert torch.equal(compiled(x[:rows]), right[:rows])


def test_what_does_not_fit() -> None:
    assert fits(torch.zeros(3, 8, dtype=torch.int8))
    assert not fits(torch.zeros(3, 10, dtype=torch.int8))
    assert not fits(torch.zeros(3, 8))


def test_an_arena_hands_out_memory_of_its_own() -> None:
    arena = Arena()
    sizes = [100, 3 << 20, 64, 70 << 20, 5]
    parts = [arena.allocate(size) for size in sizes]
    for index, part in enumerate(parts):
        part.fill_(index)
    assert [part.numel() for part in parts] == sizes
    assert all(bool((part == index).all()) for index, part in enumerate(parts))
    assert all(part.data_ptr() % 64 == 0 for part in parts)
