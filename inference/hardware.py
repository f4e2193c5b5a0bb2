"""What this machine can do: device, threads, and kernels chosen by `inference.probe`."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import torch

from inference.api import EngineConfig
from inference.errors import UnsupportedNumerics
from inference.model.config import ModelConfig
from inference.model.device import computes
from inference.model.linear.int8 import Int8Kernel
from inference.probe.candidates import GetLibrary
from inference.probe.choice import KernelChoice, choose_int8_kernel
from inference.probe.identity import available_cores
from inference.probe.race import KernelReport
from inference.probe.rows import (
    TILES,
    attention_ignores_capacity,
    choose_attention_tiles,
    dense_rows_agree,
    elementwise_rows_agree,
)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


@dataclass(frozen=True)
class Hardware:
    """The choices, with the reasons for `draftline doctor`.

    Attributes:
        int8_kernel: None where int8 is not used.
        attention_tiles: see `attention.plan_rows`.
        bit_exact: the probe found that blocks of any size give the same bits.
        kernel_choice: where ``int8_kernel`` comes from; None where int8 is not used.
    """

    device: torch.device
    threads: int
    isa: str
    int8_kernel: Int8Kernel | None
    attention_tiles: tuple[int, ...]
    bit_exact: bool
    reports: tuple[KernelReport, ...]
    notes: tuple[str, ...]
    kernel_choice: KernelChoice | None = None

    @property
    def other_int8_kernel(self) -> Int8Kernel:
        """The one of torch, for what the compiled one cannot take."""
        if self.int8_kernel not in (None, Int8Kernel.COMPILED):
            return self.int8_kernel
        right = [r for r in self.reports if r.exact and r.name != Int8Kernel.COMPILED.value]
        return Int8Kernel(min(right, key=lambda report: report.ms).name) if right else Int8Kernel.FLOAT


def default_threads() -> int:
    """One core stays free for the editor where there are more than two."""
    cores = available_cores()
    return cores if cores <= 2 else min(cores - 1, 8)


def isa_name() -> str:
    """Instruction set as torch sees it, with the cap of oneDNN if one is set."""
    name = torch.backends.cpu.get_cpu_capability()
    if getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)():
        name += " AMX"
    elif getattr(torch.cpu, "_is_vnni_supported", lambda: False)():
        name += " VNNI"
    cap = os.environ.get("ONEDNN_MAX_CPU_ISA")
    return f"{platform.machine()} {name}" + (f", oneDNN capped at {cap}" if cap else "")


def choose_device(config: EngineConfig) -> torch.device:
    """The device asked for.

    Raises:
        UnsupportedNumerics: it is not there, or cannot run the numerics.
    """
    kind = config.device
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if kind not in present:
        raise UnsupportedNumerics(f"Unknown device {kind!r}.", "Use cpu, cuda or mps.")
    if not present[kind]:
        raise UnsupportedNumerics(f"This machine has no usable {kind} device.", "Use --device cpu.")
    if kind != "cpu" and config.numerics == "int8":
        raise UnsupportedNumerics(f"int8 runs on the CPU only, not on {kind}.", "Add --numerics bf16.")
    device = torch.device(kind)
    dtype = DTYPES.get(config.numerics)
    if dtype is not None and not computes(device, dtype):
        raise UnsupportedNumerics(
            f"The {kind} device of this machine cannot compute in {config.numerics}.", "Add --numerics fp16."
        )
    return device


def probe(config: EngineConfig, model: ModelConfig, library: GetLibrary = None) -> Hardware:
    """Choose kernels for this machine and model; sets torch's thread count.

    Takes some 50 ms, and up to half a second more at the first start on a machine.

    Args:
        library: gives the compiled functions, for kernels that are among them.
    """
    device = choose_device(config)
    threads = config.threads or default_threads()
    torch.set_num_threads(threads)
    choice: KernelChoice | None = None
    notes: list[str] = []
    if config.numerics == "int8":
        choice = choose_int8_kernel(library)
        notes += choice.notes
        if choice.kernel not in (Int8Kernel.COMPILED, Int8Kernel.ONEDNN):
            notes.append(f"The fast int8 kernels are wrong or missing here; using {choice.kernel.value}.")
    if device.type == "cpu":
        tiles, exact = choose_attention_tiles(model)
        exact = exact and attention_ignores_capacity(model, tiles) and elementwise_rows_agree(model)
        if config.numerics != "int8":
            exact = exact and dense_rows_agree(model, DTYPES[config.numerics])
    else:
        tiles, exact = TILES, False
        notes.append("Bit-exactness is not promised on this device.")
    if not exact and device.type == "cpu":
        notes.append("A row's bits depend on the rows beside it here: bit-exactness is not promised.")
    return Hardware(
        device,
        threads,
        isa_name(),
        None if choice is None else choice.kernel,
        tiles,
        exact,
        () if choice is None else choice.reports,
        tuple(notes),
        choice,
    )
