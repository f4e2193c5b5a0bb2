"""Real engine processes with a made-up engine: one for all who start at once, a new one for a silent one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference.api import EngineConfig
from inference.errors import EngineLost, EngineStopped
from inference.sharing import client as client_module
from inference.sharing import start
from inference.sharing.client import SharedEngine
from inference.sharing.inspect import running_engines
from inference.sharing.messages import Hello
from inference.sharing.place import Place
from inference.sharing.start import attach
from tests.unit.inference.sharing_stand import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs Unix sockets")

FAKE = (sys.executable, str(Path(__file__).parents[2] / "e2e" / "fake_engine_process.py"))


class Starter:
    """Starts processes, and ends them with the test."""

    def __init__(self, directory: Path) -> None:
        self.place = Place(directory, "fedcba9876543210")
        self.hello = Hello(self.place.key, os.getpid())
        self.processes: list[subprocess.Popen[bytes]] = []
        self.stop = threading.Event()

    def spawn(self, place: Place, config: EngineConfig) -> subprocess.Popen[bytes]:
        process = start.start_process(place, config)
        self.processes.append(process)
        return process

    def attach(self) -> tuple[Any, int]:
        link, welcome = attach(self.place, EngineConfig(), self.hello, self.stop, self.spawn, patience=2)
        return link, welcome.pid

    def alive(self) -> list[int]:
        """Processes of this engine, whoever their parent is."""
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            words = process.info["cmdline"] or []
            named = any(str(self.place.directory) in word for word in words)
            if named and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        return found


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    monkeypatch.setattr(start, "COMMAND", FAKE)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        starter = Starter(Path(directory))
        yield starter
        for pid in starter.alive():
            os.kill(pid, signal.SIGKILL)
        for process in starter.processes:
            process.kill()
            process.wait()


def test_those_who_start_at_once_get_one_process(starter: Starter) -> None:
    found: list[tuple[Any, int]] = []
    threads = [threading.Thread(target=lambda: found.append(starter.attach())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (pid,) = {pid for _, pid in found}
    statuses = sorted(process.wait(30) for process in starter.processes if process.pid != pid)
    listening = 1 if sys.platform.startswith("linux") else 0  # it leaves a parent behind that says so
    assert statuses == [0] * listening + [start.ANOTHER_RUNS] * (len(starter.processes) - 1)
    until(lambda: starter.alive() == [pid])  # the others have loaded nothing, and end
    # Nobody who ends this process, its group or its children ends the engine.
    assert os.getsid(pid) != os.getsid(0)
    if listening:
        assert pid not in [child.pid for child in psutil.Process().children(recursive=True)]
    (running,) = running_engines(starter.place.directory)
    assert running.clients == 4
    assert starter.place.log.stat().st_mode & 0o777 == 0o600
    for link, _ in found:
        link.close()


def test_a_process_that_was_killed_is_replaced(starter: Starter) -> None:
    link, pid = starter.attach()
    os.kill(pid, signal.SIGKILL)
    assert link.receive() is None or link.receive() is None  # the status came before
    again, other = starter.attach()
    assert other != pid and starter.alive() == [other]
    link.close()
    again.close()


def test_a_process_that_answers_nobody_is_ended(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    link, pid = starter.attach()
    monkeypatch.setattr(start, "SILENT_SECONDS", 0.2)
    psutil.Process(pid).suspend()
    again, other = starter.attach()
    assert other != pid and starter.alive() == [other]
    link.close()
    again.close()


def test_only_the_engine_itself_is_ended(starter: Starter) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    starter.processes.append(other)
    starter.place.pid.write_text(str(other.pid))  # the number was given to somebody else
    start.end_silent(starter.place)
    assert other.poll() is None
    starter.place.pid.write_text("nonsense")
    start.end_silent(starter.place)
    starter.place.pid.unlink()
    start.end_silent(starter.place)


def test_a_process_that_cannot_run_is_given_up(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "COMMAND", (sys.executable, "-c", "print('no good'); raise SystemExit(3)"))
    with pytest.raises(EngineLost, match="status 3") as raised:
        starter.attach()
    assert str(starter.place.log) in raised.value.next_step
    assert "no good" in starter.place.log.read_text()
    monkeypatch.setattr(start, "COMMAND", ("/none/python",))
    with pytest.raises(EngineLost, match="cannot be started"):
        starter.attach()


def test_nothing_is_started_for_those_who_have_closed(starter: Starter) -> None:
    starter.stop.set()
    with pytest.raises(EngineStopped):
        starter.attach()
    assert starter.processes == []


def test_an_engine_that_cannot_even_be_made_is_given_up(
    starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_STEP_SECONDS", "nonsense")
    with pytest.raises(EngineLost, match="status 1"):
        starter.attach()
    assert "could not convert" in starter.place.log.read_text()


def test_who_leaves_for_another_engine_takes_along_a_process_that_only_begins(
    starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, left = threading.Event(), threading.Event()

    def spawn(place: Place, config: EngineConfig) -> subprocess.Popen[bytes]:
        starter.processes.append(start_process(place, config))
        begun.set()
        left.wait(30)
        return starter.processes[-1]

    start_process = start.start_process
    monkeypatch.setattr(start, "start_process", spawn)
    monkeypatch.setattr(client_module, "_RETIRE_SECONDS", 20.0)
    client = SharedEngine(EngineConfig(), starter.place, idle_seconds=1000)
    client.start()
    assert begun.wait(30)
    leaving = threading.Thread(target=client.retire)
    leaving.start()
    until(client._closed.is_set)
    left.set()
    leaving.join(60)
    assert not leaving.is_alive()
    until(lambda: starter.alive() == [])


def test_a_process_that_only_begins_stays_for_those_who_use_it(starter: Starter) -> None:
    link, pid = starter.attach()
    start.dismiss(starter.place, starter.hello, 10)
    assert starter.alive() == [pid]
    (running,) = running_engines(starter.place.directory)
    assert running.clients == 1
    link.close()
