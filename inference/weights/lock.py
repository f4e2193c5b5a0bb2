"""One process at a time per model: the others wait, and say why."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from inference import paths
from inference.weights.disk import not_writable_explained, read_json, write_json
from inference.weights.progress import Progress


@contextlib.contextmanager
def exclusive(name: str, activity: str, progress: Progress) -> Iterator[None]:
    """Hold the machine-wide lock ``name`` while doing ``activity`` (e.g. ``"downloading X"``).

    The operating system drops the lock of a process that dies, so there are no stale locks. The
    file beside it only says who holds it, for the message of those who wait.
    """
    directory = paths.locks_dir()
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    owner_file = directory / f"{stem}.owner.json"
    lock = FileLock(directory / f"{stem}.lock")
    try:
        with not_writable_explained():
            directory.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
    except Timeout:
        _wait(lock, owner_file, progress)
    try:
        write_json(owner_file, {"pid": os.getpid(), "activity": activity})
        yield
    finally:
        owner_file.unlink(missing_ok=True)
        lock.release()


def _wait(lock: FileLock, owner_file: Path, progress: Progress) -> None:
    owner = read_json(owner_file) or {}
    progress.begin(
        f"waiting for process {owner.get('pid', '?')}, which is {owner.get('activity', 'busy')}", None
    )
    try:
        lock.acquire(poll_interval=0.1)
    finally:
        progress.end()
