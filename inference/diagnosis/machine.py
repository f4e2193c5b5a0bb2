"""The machine as other programs leave it: cores, memory, disk. Reads counters only."""

from __future__ import annotations

import os
import platform
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

# A process that takes less than this share of one core does not slow the model.
BUSY_SHARE = 0.1
# CPU time is counted in ticks of 10 ms: shorter looks are mostly rounding.
LOOK_SECONDS = 0.4


@dataclass(frozen=True)
class BusyProcess:
    """Another process that used ``cores`` cores while we looked."""

    pid: int
    name: str
    cores: float


@dataclass(frozen=True)
class Cores:
    """Attributes:
    usable: cores this process may run on.
    quota: cores' worth of time the container may use, None without a limit.
    free: cores nobody used while we looked.
    load: load average over 1, 5 and 15 minutes; None where the system has none.
    busy: other processes, the busiest first.
    """

    processor: str
    usable: int
    quota: float | None
    free: float
    load: tuple[float, float, float] | None
    busy: tuple[BusyProcess, ...]


@dataclass(frozen=True)
class Memory:
    """Bytes. ``limit`` is the container's; ``pressure`` the share of the last 60 s in which some
    process waited for memory (percent, Linux only); both None if unknown."""

    total: int
    available: int
    swap_total: int
    swap_used: int
    limit: int | None
    pressure: float | None


@dataclass(frozen=True)
class Disk:
    """The file system of Draftline's files, in bytes."""

    path: str
    total: int
    free: int
    writable: bool


@dataclass(frozen=True)
class Machine:
    """All of it."""

    system: str
    cores: Cores
    memory: Memory
    disk: Disk


def look(home: Path, seconds: float = LOOK_SECONDS) -> Machine:
    """Look at the machine for some ``seconds``; call it before putting load on it."""
    return Machine(f"{platform.system()} {platform.release()}", _cores(seconds), _memory(), _disk(home))


def seconds_since_start() -> float:
    """How long this process has been running: what the interpreter and the imports so far took."""
    return max(0.0, time.time() - float(psutil.Process().create_time()))


def private_bytes(pid: int | None = None) -> int:
    """Memory of a process, of this one by default, that no other process shares and no file backs.

    Where the system does not tell that apart, pages of mapped files that only this process uses count too.

    Raises:
        psutil.Error: there is no such process, or it is another user's.
    """
    for line in _text(f"/proc/{pid or 'self'}/smaps_rollup").splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    return int(psutil.Process(pid).memory_full_info().uss)


def resident_bytes_of(file: Path) -> int | None:
    """Bytes of a mapped file that are in memory for this process; None where that is unknown."""
    try:
        maps = psutil.Process().memory_maps(grouped=True)
    except (AttributeError, psutil.Error, OSError):
        return None
    real = str(file.resolve())
    return sum(int(entry.rss) for entry in maps if entry.path == real)


def _cores(seconds: float) -> Cores:
    def cpu_seconds() -> dict[int, tuple[str, float]]:
        found = {}
        for process in psutil.process_iter(["name", "cpu_times"]):
            times = process.info["cpu_times"]
            if process.pid != os.getpid() and times is not None:
                found[process.pid] = (process.info["name"] or "?", times.user + times.system)
        return found

    before, start = cpu_seconds(), time.perf_counter()
    shares = psutil.cpu_percent(interval=seconds, percpu=True)
    after, passed = cpu_seconds(), time.perf_counter() - start
    busy = [
        BusyProcess(pid, name, round((used - before[pid][1]) / passed, 2))
        for pid, (name, used) in after.items()
        if pid in before and (used - before[pid][1]) / passed >= BUSY_SHARE
    ]
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(len(shares))
    free = sum(1.0 - shares[core] / 100 for core in allowed if core < len(shares))
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return Cores(
        processor=processor(),
        usable=len(allowed),
        quota=_quota(),
        free=round(free, 2),
        load=None if load is None else (round(load[0], 2), round(load[1], 2), round(load[2], 2)),
        busy=tuple(sorted(busy, key=lambda process: -process.cores)[:5]),
    )


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _quota() -> float | None:
    """Of control group version 2; containers are limited by it and see all cores nevertheless."""
    words = _text("/sys/fs/cgroup/cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    return None


def _memory() -> Memory:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    limit = _text("/sys/fs/cgroup/memory.max").strip()
    return Memory(
        total=int(memory.total),
        available=int(memory.available),
        swap_total=int(swap.total),
        swap_used=int(swap.used),
        limit=int(limit) if limit.isdigit() else None,
        pressure=parse_pressure(_text("/proc/pressure/memory")),
    )


def parse_pressure(text: str) -> float | None:
    """``avg60`` of the line ``some`` of /proc/pressure/memory."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["some"]:
            for word in words[1:]:
                name, _, value = word.partition("=")
                if name == "avg60":
                    return float(value)
    return None


def _disk(home: Path) -> Disk:
    existing = home.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    usage = shutil.disk_usage(existing)
    return Disk(str(home), usage.total, usage.free, existing.is_dir() and os.access(existing, os.W_OK))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
