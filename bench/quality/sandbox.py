"""Running a model's code with its tests, in a process of its own that cannot run away.

This is no security boundary. It bounds time, memory and file sizes, and keeps working directory, environment
and leftovers apart, which is what wrong code needs. Malicious code could still read files of the user, use
the network or leave the process group.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

_CHILD = Path(__file__).with_name("sandbox_child.py")
# Without these Windows cannot start a process.
_KEPT_VARIABLES = ("SYSTEMROOT", "SYSTEMDRIVE")


@dataclass(frozen=True)
class Limits:
    """What a program may use. Memory, CPU time and file size are bounded on POSIX only.

    Attributes:
        seconds: wall time.
        cpu_seconds: of one process.
        memory_bytes: address space of one process.
        file_bytes: of one file.
    """

    seconds: float = 10.0
    cpu_seconds: int = 12
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 20


def run_program(source: str, limits: Limits | None = None) -> str:
    """Run a Python program to its end, without input; what it prints is thrown away.

    Returns:
        "" if it ended normally, else "timeout", "memory", "syntax", the name of the exception, or
        "exit" or the name of a signal if its process died before the end. It cannot end normally by leaving
        early, e.g. with ``sys.exit(0)``.
    """
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="draftline-", ignore_cleanup_errors=True) as temporary:
        # The program runs beside its verdict, not where it lies.
        root, cwd = Path(temporary), Path(temporary, "cwd")
        cwd.mkdir()
        program, verdict = root / "program.py", root / "verdict"
        program.write_text(source, encoding="utf-8", errors="replace")
        numbers = (limits.cpu_seconds, limits.memory_bytes, limits.file_bytes)
        command = [sys.executable, "-I", str(_CHILD), str(program), str(verdict), *map(str, numbers)]
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=_environment(cwd),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            _kill(process)
        if verdict.exists():
            return verdict.read_text(encoding="utf-8")
        return _death(process.returncode)


def _environment(cwd: Path) -> dict[str, str]:
    """Nothing of the user's, and one thread, whose stacks count as address space."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**kept, **single, "HOME": str(cwd), "TMPDIR": str(cwd), "TEMP": str(cwd)}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it started."""
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
    except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
        pass  # all have ended; macOS refuses to signal what has ended and was not waited for
    process.kill()
    process.wait()


def _death(status: int) -> str:
    """Why a process without a verdict ended."""
    if status >= 0:
        return "exit"
    name = next((known.name for known in signal.Signals if known == -status), f"signal {-status}")
    return "timeout" if name == "SIGXCPU" else name
