"""What this machine can do: device, threads, and kernels chosen by a short probe of values."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass

import torch

from inference.api import EngineConfig, default_numerics
from inference.bitsandbytes_library import bitsandbytes
from inference.cache.kv import KV_BUCKET
from inference.errors import UnsupportedNumerics
from inference.model.attention import attend, plan_rows
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm, silu_times
from inference.model.linear.int8 import FLOAT_BLOCK, Int8Kernel, Int8Linear, quantize_rows
from inference.model.linear.random_weights import random_linear, rows_agree
from inference.precision import precision_of

# A kernel that is right but this much slower than float is oneDNN's reference implementation (300 times).
# Far from 1, because a busy core can make one measurement ten times too long.
TOO_SLOW = 40.0

# Positions per attention tile, if their bits agree; else the first alone, padded.
TILES = (1, 4, 16)
FIXED_TILE = 16


@dataclass(frozen=True)
class KernelReport:
    """One candidate of the probe: is it right, and ms for a [16, 1024] x [1024, 2048] product."""

    name: str
    exact: bool
    ms: float


@dataclass(frozen=True)
class Hardware:
    """The choices, with the reasons for `draftline doctor`.

    Attributes:
        int8_kernel: None where int8 is not used.
        attention_tiles: see `attention.plan_rows`.
        bit_exact: the probe found that blocks of any size give the same bits.
    """

    device: torch.device
    threads: int
    isa: str
    int8_kernel: Int8Kernel | None
    attention_tiles: tuple[int, ...]
    bit_exact: bool
    reports: tuple[KernelReport, ...]
    notes: tuple[str, ...]


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    return torch.device(kind)


def probe(config: EngineConfig, model: ModelConfig) -> Hardware:
    """Choose kernels for this machine and model. Takes some 50 ms; sets torch's thread count."""
    device = choose_device(config)
    threads = config.threads or default_threads()
    torch.set_num_threads(threads)
    kernel: Int8Kernel | None = None
    reports: list[KernelReport] = []
    notes: list[str] = []
    used = precision_of(config).used
    if "int8" in used:
        kernel, reports = choose_int8_kernel()
        if kernel is not Int8Kernel.ONEDNN:
            notes.append(f"The plain u8 x s8 kernel is wrong or missing here; using {kernel.value}.")
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
    return Hardware(device, threads, isa_name(), kernel, tiles, exact, tuple(reports), tuple(notes))


def choose_int8_kernel() -> tuple[Int8Kernel, list[KernelReport]]:
    """The first kernel whose values are right and that is not a slow reference implementation."""
    generator = torch.Generator().manual_seed(7)
    weight = torch.randint(-127, 128, (2048, 1024), dtype=torch.int8, generator=generator)
    # Long runs of one sign and full range: what saturating 16-bit sums get wrong.
    weight[:512] = weight[:512].abs()
    x = torch.randn(67, 1024, generator=generator)
    x[::2] = x[::2].abs()
    scale = torch.rand(2048, generator=generator) * 0.01 + 0.001
    right = exact_product(x, weight, scale)
    reports = [_report(kernel, x, weight, scale, right) for kernel in Int8Kernel]
    budget = reports[-1].ms * TOO_SLOW  # the float kernel, always right, comes last
    for kernel, report in zip(Int8Kernel, reports, strict=True):
        if report.exact and report.ms <= budget:
            return kernel, reports
    return Int8Kernel.FLOAT, reports


def _report(
    kernel: Int8Kernel, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, right: torch.Tensor
) -> KernelReport:
    try:
        linear = Int8Linear(weight, scale, None, kernel)
        exact = all(torch.equal(linear(x[:rows]), right[:rows]) for rows in (1, 2, 5, 67))
        # The best of some: a busy core must not make a good kernel look like a reference one.
        times = []
        for _ in range(4):
            start = time.perf_counter()
            linear(x[:16])
            times.append(time.perf_counter() - start)
        return KernelReport(kernel.value, exact, min(times) * 1000)
    except (RuntimeError, AttributeError, NotImplementedError):
        return KernelReport(kernel.value, False, float("inf"))


def exact_product(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """What an int8 kernel must return: integers summed exactly, then scaled in float32."""
    q, row_scale = quantize_rows(x)
    total = torch.zeros(x.shape[0], weight.shape[0], dtype=torch.float64)
    signed = q.float() - 128.0
    for start in range(0, weight.shape[1], FLOAT_BLOCK):
        part = slice(start, start + FLOAT_BLOCK)
        total += signed[:, part] @ weight[:, part].float().t()
    return total.float().mul_(scale).mul_(row_scale)


def choose_attention_tiles(model: ModelConfig) -> tuple[tuple[int, ...], bool]:
    """Tile sizes that give equal bits, and whether a row's place in its tile is irrelevant."""
    generator = torch.Generator().manual_seed(11)
    rows, length = 2 * FIXED_TILE + 3, 2 * KV_BUCKET
    heads, kv_heads, dim = model.n_heads, model.n_kv_heads, model.head_dim
    query = torch.randn(rows, heads, dim, generator=generator)
    keys = torch.randn(kv_heads, length, dim, generator=generator)
    values = torch.randn(kv_heads, length, dim, generator=generator)
    first = KV_BUCKET - FIXED_TILE - 1  # the block straddles a bucket
    cpu = torch.device("cpu")

    def run(tiles: tuple[int, ...], skip: int = 0) -> torch.Tensor:
        groups = plan_rows(first + skip, rows - skip, heads // kv_heads, tiles, cpu, torch.float32)
        return attend(query[skip:], keys, values, groups, model.attention_scale)

    single = run((1,))
    good = [tile for tile in TILES if torch.equal(run((tile,)), single)]
    if good == list(TILES) and torch.equal(run(TILES), single):
        return TILES, True
    fixed = run((FIXED_TILE,))
    shifted = all(torch.equal(run((FIXED_TILE,), skip), fixed[skip:]) for skip in (1, 3, 7))
    return (FIXED_TILE,), shifted


def attention_ignores_capacity(model: ModelConfig, tiles: tuple[int, ...]) -> bool:
    """Whether a slot that has grown, or that holds int8, gives the same bits.

    Only the distance in memory from one head to the next differs.
    """
    generator = torch.Generator().manual_seed(29)
    heads, kv_heads, dim = model.n_heads, model.n_kv_heads, model.head_dim
    query = torch.randn(FIXED_TILE + 1, heads, dim, generator=generator)
    wide = torch.randn(2, kv_heads, 2 * KV_BUCKET, dim, generator=generator)
    first, cpu = KV_BUCKET - FIXED_TILE - 1, torch.device("cpu")
    groups = plan_rows(first, FIXED_TILE + 1, heads // kv_heads, tiles, cpu, torch.float32)
    found = [
        attend(query, keys, values, groups, model.attention_scale)
        for keys, values in (wide, wide[:, :, :KV_BUCKET].clone())
    ]
    return torch.equal(found[0], found[1])


def elementwise_rows_agree(model: ModelConfig) -> bool:
    """Whether norm and activation give a row the same bits alone and among others."""
    generator = torch.Generator().manual_seed(13)
    rows = 41
    hidden = torch.randn(rows, model.hidden_size, generator=generator)
    weight = torch.rand(model.hidden_size, generator=generator)
    gate_up = torch.randn(rows, 2 * model.intermediate_size, generator=generator)
    normed, active = rms_norm(hidden, weight, model.rms_eps), silu_times(gate_up)
    for part in (slice(0, 1), slice(3, 22), slice(5, 38)):
        if not torch.equal(rms_norm(hidden[part], weight, model.rms_eps), normed[part]):
            return False
        if not torch.equal(silu_times(gate_up[part]), active[part]):
            return False
    return True
