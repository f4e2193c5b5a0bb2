"""What is said of machine and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.journal import CannotRecord, Journal, command_line
from bench.machine import cpu_seconds_of, draftline, machine, memory_of
from bench.records import Bandwidth, Run

MB = 1 << 20


# A process of its own: this one may have memory to spare, which a new object would take.
_HOLDER = """
import mmap, sys
input()
file = open(sys.argv[1], "rb")
view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
touched = sum(view[at] for at in range(0, len(view), 4096))
taken = bytearray(b"x" * (20 << 20))
print("held", flush=True)
input()
"""


def test_mapped_files_are_not_private(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(8 * MB))
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        time.sleep(0.5)  # until it waits
        private, mapped = memory_of([process.pid])
        print(file=process.stdin, flush=True)
        assert process.stdout.readline() == "held\n"
        more_private, more_mapped = memory_of([process.pid])
        print(file=process.stdin, flush=True)
    assert private is not None and mapped is not None
    assert more_private is not None and more_mapped is not None
    assert more_mapped - mapped >= 7 * MB
    assert 15 * MB <= more_private - private <= 50 * MB


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


def test_the_command_line_shows_no_places_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["bench", "latency", "--repo", "/home/me/secret/app", "--out=/tmp/x.jsonl", "--count", "3"]
    words += [
        "--peer",
        "llama-server=/opt/bin/llama-server,/home/me/m.gguf",
        "--peer",
        "openai=http://u:p@h:1/v1",
    ]
    monkeypatch.setattr("sys.argv", ["draftline", *words])
    assert command_line() == (
        "draftline bench latency --repo app --out=x.jsonl --count 3"
        " --peer llama-server=llama-server,m.gguf --peer openai=http://h:1/v1"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is full")
def test_a_full_disk_is_said_and_keeps_what_was_measured(tmp_path: Path) -> None:
    run = Run("exactness", "x", "2026-01-01T00:00:00Z", False, {}, {}, {})
    line = Bandwidth(1.0, 2)
    journal = Journal(tmp_path / "out.jsonl", run)
    assert journal._file is not None
    journal._file.close()
    journal._file = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115
    with pytest.raises(CannotRecord, match="make room"), journal:
        journal.add(line)
    assert journal.records == [run, line]
