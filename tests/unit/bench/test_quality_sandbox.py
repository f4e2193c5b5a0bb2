"""Wrong code of every kind ends, is named, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench.quality.sandbox import Limits, run_program

SHORT = Limits(seconds=1.5)

posix = pytest.mark.skipif(os.name != "posix", reason="limits and process groups are POSIX's")


def test_a_program_that_ends_is_no_failure() -> None:
    assert run_program("print('hello')") == ""


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("assert 1 == 2", "AssertionError"),
        ("class Odd(Exception):\n    def __str__(self): 1 / 0\nraise Odd", "Odd"),
        ("x = (", "syntax"),
        ("return 1", "syntax"),
        ("def f(): f()\nf()", "RecursionError"),
        ("input()", "EOFError"),
        # None of these may count as having passed the tests behind it.
        ("import sys; sys.exit(0)", "SystemExit"),
        ("import os; os._exit(0)", "exit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_failures_have_names(source: str, failure: str) -> None:
    assert run_program(source) == failure


def test_an_endless_loop_is_stopped() -> None:
    start = time.monotonic()
    assert run_program("while True: pass", SHORT) == "timeout"
    assert time.monotonic() - start < 10


def test_a_flood_of_output_is_thrown_away() -> None:
    assert run_program("for _ in range(200): print('x' * 100_000)") == ""
    assert run_program("while True: print('x' * 100_000)", SHORT) == "timeout"


def test_a_thread_that_waits_is_not_waited_for() -> None:
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"
    assert run_program(source, Limits(seconds=5)) == ""


def test_examples_behind_a_main_guard_do_not_run() -> None:
    assert run_program("if __name__ == '__main__': raise ValueError") == ""


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not limit the address space")
def test_memory_is_bounded() -> None:
    assert run_program("kept = []\nwhile True: kept.append(bytearray(1 << 20))") == "memory"
    assert run_program("x = bytearray(1 << 40)") == "memory"


@posix
def test_processor_time_is_bounded() -> None:
    assert run_program("while True: pass", Limits(seconds=30, cpu_seconds=1)) == "timeout"


@posix
def test_files_are_bounded() -> None:
    assert run_program("open('big', 'wb').write(bytes(1 << 21))") == "OSError"


@posix
def test_a_crash_is_named_after_its_signal() -> None:
    assert run_program("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)") == "SIGSEGV"


@posix
def test_a_child_left_behind_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    source = f"""
import os, time
child = os.fork()
if not child:
    time.sleep(60)
open({str(note)!r}, "w").write(str(child))
"""
    assert run_program(source, Limits(seconds=5)) == ""
    assert _ends(int(note.read_text()))


@posix
def test_children_of_a_stopped_program_are_killed_too(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    source = f"""
import os, time
child = os.fork()
if child:
    open({str(note)!r}, "w").write(str(child))
time.sleep(60)
"""
    assert run_program(source, SHORT) == "timeout"
    assert _ends(int(note.read_text()))


@posix
def test_a_fork_does_not_judge() -> None:
    source = "import os\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\n    os._exit(0)\n"
    assert run_program(source) == "exit"


def test_it_runs_in_an_empty_directory_that_goes_away(tmp_path: Path) -> None:
    note = tmp_path / "cwd"
    source = f"""
import os
assert os.listdir() == []
open("left", "w").write("x")
open({str(note)!r}, "w").write(os.getcwd())
"""
    assert run_program(source) == ""
    cwd = Path(note.read_text())
    assert cwd != Path.cwd()
    assert not cwd.exists() and not cwd.parent.exists()


def test_it_sees_neither_the_environment_nor_the_modules_around(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nearby.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_program("import os; assert 'SECRET_TOKEN' not in os.environ") == ""
    assert run_program("import nearby") == "ModuleNotFoundError"


def _ends(pid: int) -> bool:
    """Whether a process has ended within a while; a zombie has."""
    for _ in range(100):
        if not psutil.pid_exists(pid):
            return True
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False
