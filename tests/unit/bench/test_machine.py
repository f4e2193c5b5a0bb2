"""What is said of machine and processes."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

from bench.machine import cpu_seconds_of, draftline, machine, memory_of

MB = 1 << 20


def test_mapped_files_are_not_private(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(8 * MB))
    pids = [os.getpid()]
    private, mapped = memory_of(pids)
    assert private is not None and mapped is not None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        assert sum(view[at] for at in range(0, len(view), 4096)) > 0
        taken = bytearray(os.urandom(20 * MB))
        more_private, more_mapped = memory_of(pids)
    assert more_private is not None and more_mapped is not None
    assert more_mapped - mapped >= 7 * MB
    assert 15 * MB <= more_private - private <= 30 * MB
    assert len(taken) == 20 * MB


def test_a_process_that_is_gone_is_unknown() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert (cpu_seconds_of([process.pid]) or 0.0) >= 0.0
    process.communicate(b"\n")
    assert memory_of([process.pid]) == (None, None)
    assert cpu_seconds_of([process.pid]) is None


def test_machine_names_no_user_and_no_path() -> None:
    facts = machine()
    assert facts["cores"] >= 1 and facts["memory_gb"] > 0 and facts["torch"].startswith("2.")
    assert not any(str(Path.home()) in str(value) for value in [*facts.values(), *draftline().values()])
    assert draftline()["version"]
