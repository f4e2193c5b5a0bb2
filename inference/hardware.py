"""What this machine can do: device, threads, and kernels chosen by `inference.probe`."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import torch

from inference.api import EngineConfig, default_numerics
from inference.bitsandbytes_library import bitsandbytes
from inference.errors import UnsupportedNumerics
from inference.model.config import ModelConfig
from inference.model.device import computes
from inference.model.linear.int8 import Int8Kernel
from inference.model.linear.random_weights import DTYPES, random_linear, rows_agree
from inference.precision import precision_of
from inference.probe.candidates import GetLibrary
from inference.probe.choice import KernelChoice, choose_int8_kernel
from inference.probe.identity import available_cores
from inference.probe.race import KernelReport
from inference.probe.rows import (
    TILES,
    attention_ignores_capacity,
    choose_attention_tiles,
    elementwise_rows_agree,
)


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
        others = [r for r in self.reports if r.exact and r.name != Int8Kernel.COMPILED.value]
        right = [report for report in others if not report.gave_up] or others
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
    used = precision_of(config).used
    if kind != "cpu" and "int8" in used:
        raise UnsupportedNumerics(
            f"int8 runs on the CPU only, not on {kind}.",
            f"Choose other numerics there, e.g. {default_numerics(kind)}.",
        )
    if used & {"nf4", "llm-int8"}:
        if kind == "mps":
            raise UnsupportedNumerics(
                "nf4 and llm-int8 run on cpu and cuda only.", "Choose other numerics there, e.g. bf16."
            )
        bitsandbytes()
    device = torch.device(kind)
    for numerics in sorted(used & set(DTYPES)):
        if not computes(device, DTYPES[numerics]):
            raise UnsupportedNumerics(
                f"The {kind} device of this machine cannot compute in {numerics}.", "Add --numerics fp16."
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
    used = precision_of(config).used
    if "int8" in used:
        choice = choose_int8_kernel(library)
        notes += choice.notes
        if choice.kernel not in (Int8Kernel.COMPILED, Int8Kernel.ONEDNN):
            notes.append(f"The fast int8 kernels are wrong or missing here; using {choice.kernel.value}.")
    if device.type == "cpu":
        tiles, exact = choose_attention_tiles(model)
        exact = exact and attention_ignores_capacity(model, tiles) and elementwise_rows_agree(model)
        for numerics in sorted(used - {"int8"}):
            linear = random_linear(numerics, model.hidden_size, model.hidden_size, device, None)
            exact = exact and rows_agree(linear, model.hidden_size)
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
