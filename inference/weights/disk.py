"""Writing to disk so that a crash at any moment leaves either the old state or the new one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inference import paths
from inference.errors import DiskFull, HomeNotWritable

# Room left free beyond what a step needs: a disk filled to the last byte breaks other programs.
SPARE_BYTES = 64 * 2**20


def megabytes(count: int) -> str:
    """``491400064`` -> ``"491 MB"``."""
    return f"{count / 1e9:.1f} GB" if count >= 10**9 else f"{count / 1e6:.0f} MB"


def require_room(directory: Path, count: int, purpose: str) -> None:
    """Check before a long step that ``count`` bytes fit into ``directory``'s file system.

    Raises:
        DiskFull: naming how much is needed and how much is there.
    """
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < count + SPARE_BYTES:
        raise DiskFull(
            f"{purpose} needs {megabytes(count)} in {directory}, but only {megabytes(free)} are free.",
            "Free some space, or set DRAFTLINE_HOME to a directory on a larger disk.",
        )


DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def disk_full_explained(directory: Path, purpose: str) -> Iterator[None]:
    """Turn the operating system's "no space left" into DiskFull; room may vanish during a step."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise DiskFull(
                f"The disk of {directory} became full: {purpose} could not be finished.",
                "Free some space, or set DRAFTLINE_HOME to a directory on a larger disk; "
                "finished parts are kept.",
            ) from error
        raise


NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENOENT, errno.EEXIST})


@contextlib.contextmanager
def not_writable_explained() -> Iterator[None]:
    """Turn a refusal to write below our own directory into HomeNotWritable."""
    try:
        yield
    except OSError as error:
        if error.errno in NOT_WRITABLE:
            raise HomeNotWritable(
                f"{paths.home()} cannot be written: {error.strerror}.",
                "Set DRAFTLINE_HOME to a directory that you may write to.",
            ) from error
        raise


def sync_file(path: Path) -> None:
    """Flush a closed file to the device, so that a rename cannot outlive its contents."""
    # Windows flushes only through a handle that may write.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make renames inside a directory durable; Windows neither offers nor needs this."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(temporary: Path, final: Path) -> None:
    """Give a completely written file its final name."""
    sync_file(temporary)
    os.replace(temporary, final)
    sync_directory(final.parent)


def write_json(path: Path, value: Any) -> None:
    """Replace a small JSON file of ours atomically.

    Raises:
        HomeNotWritable
    """
    # The process id keeps two writers of the same file from sharing one temporary file.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with not_writable_explained():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        publish(temporary, path)


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, or None if the file is missing or not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
