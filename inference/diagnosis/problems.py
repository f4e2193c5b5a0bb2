"""From facts to what is wrong and what to do about it. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference.api import EngineConfig
from inference.diagnosis.files import ModelFiles
from inference.diagnosis.machine import Machine
from inference.diagnosis.measure import Measured
from inference.errors import DraftlineError
from inference.weights.disk import megabytes

Severity = Literal["error", "warning", "note"]

# Below this, other programs and the next conversion get into trouble.
LOW_DISK = 2 * 10**9
# Bytes on disk for each byte of a download, as `inference.weights.fetch` asks for.
ROOM_FACTOR = 3.0
HIGH_PRESSURE = 10.0  # percent of the time
# Part of a thread's core that others may use before the threads begin to wait for each other.
CORE_SLACK = 0.3
# What is used where nothing better is right; see `inference.model.linear.int8.Int8Kernel`.
FALLBACK_KERNELS = ("onednn-u8-split", "float-blocks")


@dataclass(frozen=True)
class Problem:
    """Attributes:
    code: stable and machine-readable.
    severity: an error keeps Draftline from working; a warning costs speed, room or exactness; a note
        is worth knowing.
    """

    code: str
    message: str
    next_step: str
    severity: Severity


def failure(error: DraftlineError) -> Problem:
    """Why the model could not be loaded."""
    return Problem(error.code, error.message, error.next_step, "error")


def find_problems(
    config: EngineConfig, machine: Machine, files: ModelFiles, measured: Measured | None
) -> list[Problem]:
    """Everything wrong with a machine and a model; errors first."""
    found = [*_cores(config, machine, measured), *_memory(machine, measured), *_files(machine, files)]
    if measured is not None:
        found += _model(measured)
    order = ("error", "warning", "note")
    return sorted(found, key=lambda problem: order.index(problem.severity))


def _cores(config: EngineConfig, machine: Machine, measured: Measured | None) -> list[Problem]:
    cores, found = machine.cores, []
    threads = measured.choices.threads if measured is not None else config.threads
    limit = cores.usable if cores.quota is None else min(float(cores.usable), cores.quota)
    if threads is not None and threads > limit:
        found.append(
            Problem(
                "too-many-threads",
                f"{threads} threads share {limit:g} cores.",
                f"Set --threads {max(1, int(limit))} or lower.",
                "warning",
            )
        )
    elif threads is not None and config.device == "cpu" and cores.free < threads - CORE_SLACK:
        names = ", ".join(f"{p.name} (pid {p.pid}, {p.cores:.1f} cores)" for p in cores.busy[:3])
        fewer = max(1, int(cores.free + CORE_SLACK))
        advice = f"End them or set --threads {fewer}." if fewer < threads else "End them, or wait."
        found.append(
            Problem(
                "cores-busy",
                f"{cores.free:.1f} cores were free for {threads} threads"
                + (f"; busy: {names}." if names else "."),
                f"{advice} Threads that wait for a busy core make every step slow; the figures of this "
                "report are affected.",
                "warning",
            )
        )
    return found


def _memory(machine: Machine, measured: Measured | None) -> list[Problem]:
    memory, found = machine.memory, []
    if measured is not None and memory.limit is not None and measured.memory.need > memory.limit:
        found.append(
            Problem(
                "memory-limit",
                f"With the KV budget used up {megabytes(measured.memory.need)} are needed; this container "
                f"may use {megabytes(memory.limit)}.",
                "Lower --kv-budget or --context, or raise the container's limit.",
                "warning",
            )
        )
    if measured is not None and measured.memory.need + measured.memory.mapped > memory.available:
        found.append(
            Problem(
                "memory-low",
                f"With the KV budget used up {megabytes(measured.memory.need)} and the weights files, "
                f"{megabytes(measured.memory.mapped)}, are needed; {megabytes(memory.available)} were free.",
                "Close programs, or lower --kv-budget.",
                "warning",
            )
        )
    if memory.pressure is not None and memory.pressure > HIGH_PRESSURE:
        found.append(
            Problem(
                "memory-pressure",
                f"Programs waited for memory {memory.pressure:.0f} % of the last minute.",
                "Close programs: mapped weights are the first thing such a system drops.",
                "warning",
            )
        )
    if memory.swap_total and memory.swap_used > memory.swap_total / 2:
        found.append(
            Problem(
                "swap-in-use",
                f"{megabytes(memory.swap_used)} of {megabytes(memory.swap_total)} swap are in use.",
                "Close programs if suggestions stutter.",
                "note",
            )
        )
    return found


def _files(machine: Machine, files: ModelFiles) -> list[Problem]:
    disk, found = machine.disk, []
    if not disk.writable:
        needed = not files.ready
        found.append(
            Problem(
                "home-not-writable",
                f"{disk.path} cannot be written" + (", and the model must be converted." if needed else "."),
                "Set DRAFTLINE_HOME to a directory that can be written.",
                "error" if needed else "warning",
            )
        )
    room = int(ROOM_FACTOR * files.download_bytes) if files.download_bytes and not files.present else 0
    if room and disk.free < room:
        found.append(
            Problem(
                "disk-full",
                f"Fetching {files.name} needs {megabytes(room)}, {megabytes(disk.free)} are free.",
                "Free some space, or set DRAFTLINE_HOME to a directory on a larger disk.",
                "error",
            )
        )
    elif disk.free < LOW_DISK:
        found.append(
            Problem(
                "disk-low",
                f"Only {megabytes(disk.free)} are free beside {disk.path}.",
                "Free some space, or set DRAFTLINE_HOME to a directory on a larger disk.",
                "warning",
            )
        )
    stale = [file for file in files.stored if file.stale]
    if stale:
        total = sum(file.bytes for file in stale)
        found.append(
            Problem(
                "stale-files",
                f"{len(stale)} of our files, {megabytes(total)}, will not be used again: "
                + "; ".join(f"{file.path} ({file.stale})" for file in stale[:3])
                + (", ..." if len(stale) > 3 else "."),
                "Delete them.",
                "note",
            )
        )
    return found


def _model(measured: Measured) -> list[Problem]:
    choices, found = measured.choices, []
    cpu = choices.device == "cpu"
    if not measured.fill_in_the_middle:
        found.append(
            Problem(
                "no-fim",
                f"The vocabulary of {measured.source} has no fill-in-the-middle tokens.",
                "Choose a code model; `draftline model list` names some.",
                "error",
            )
        )
    if not measured.self_test.exact and cpu and choices.bit_exact:
        blocks = ", ".join(map(str, measured.self_test.differing))
        found.append(
            Problem(
                "not-exact",
                f"The probe found equal bits, but blocks of {blocks} tokens gave other logits.",
                "Use --draft none and report this with the output of `draftline doctor --json`.",
                "error",
            )
        )
    elif not choices.bit_exact or not measured.self_test.exact:
        found.append(
            Problem(
                "exactness-not-promised",
                "Speculative and plain text may differ in rare near ties here. " + " ".join(choices.notes),
                "Use --draft none where that matters" + ("." if cpu else ", or --device cpu."),
                "warning",
            )
        )
    chosen = next((kernel.name for kernel in choices.kernels if kernel.chosen), "")
    if chosen in FALLBACK_KERNELS:
        found.append(
            Problem(
                "slow-kernel",
                f"No fast int8 kernel is usable here ({choices.instruction_set}); {chosen} is used.",
                "Nothing to do on this processor; unset ONEDNN_MAX_CPU_ISA if it is set.",
                "warning",
            )
        )
    return found
