"""What a results file says about the machine and about Draftline."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from inference.diagnosis.machine import processor
from lsp_server import __version__

_ISA_FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp")


def machine() -> dict[str, Any]:
    """The machine a run measures. Names no user, host or path."""
    memory = psutil.virtual_memory()
    return {
        "cpu": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "isa": " ".join(_isa()) or platform.machine(),
        "memory_gb": round(memory.total / 1e9, 1),
        "os": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": _version("torch"),
        "transformers": _version("transformers"),
    }


def draftline() -> dict[str, Any]:
    """Which Draftline this is."""
    return {"version": __version__, "commit": _commit()}


def memory_of(pids: list[int]) -> tuple[int | None, int | None]:
    """Private bytes of some processes together, and bytes of files mapped and in memory; None if unknown.

    Pages of mapped weights that only one process uses are not private: the system may drop them.
    """
    private, mapped = 0, 0
    if not pids:
        return None, None
    for pid in pids:
        memory = _rollup(pid)
        if memory is None:
            return None, None
        private += memory["Anonymous"]
        mapped += memory["Rss"] - memory["Anonymous"]
    return private, mapped


def _rollup(pid: int) -> dict[str, int] | None:
    """Bytes by name from the kernel's summary of a process' mappings; elsewhere the nearest that is known."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    except (OSError, ValueError, IndexError):
        pass
    try:
        memory = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return None
    return {"Anonymous": int(memory.uss), "Rss": int(memory.rss)}


def cpu_seconds_of(pids: list[int]) -> float | None:
    """User and system time of some processes since they started, None if one is gone."""
    if not pids:
        return None
    try:
        times = [psutil.Process(pid).cpu_times() for pid in pids]
    except psutil.Error:
        return None
    return float(sum(time.user + time.system for time in times))


def _isa() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            flags = set(line.split())
            return [flag for flag in _ISA_FLAGS if flag in flags]
    return []


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
