"""Checksums, and remembering them: hashing 491 MB takes longer than starting the engine."""

from __future__ import annotations

import hashlib
from pathlib import Path

from inference import paths
from inference.weights.disk import read_json, write_json
from inference.weights.progress import NoProgress, Progress

_BLOCK = 4 * 2**20


def sha256_of(path: Path, progress: Progress | None = None, label: str = "") -> str:
    """SHA-256 of a file as lower-case hex, read in blocks.

    Raises:
        OSError: the file cannot be read.
    """
    progress = progress or NoProgress()
    digest = hashlib.sha256()
    progress.begin(label or f"checking {path.name}", path.stat().st_size)
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                progress.advance(len(block))
    finally:
        progress.end()
    return digest.hexdigest()


def _marker(path: Path) -> Path:
    # Kept in our own directory: weights may lie where we cannot or should not write.
    return paths.verified_dir() / f"{hashlib.sha256(str(path).encode()).hexdigest()[:24]}.json"


def remember(path: Path, sha256: str) -> None:
    """Note that this very file (by size and modification time) has this checksum."""
    path = path.resolve()
    status = path.stat()
    write_json(
        _marker(path),
        {"path": str(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256},
    )


def remembered(path: Path) -> str | None:
    """The checksum noted for this file, or None if there is none or the file changed since."""
    path = path.resolve()
    noted = read_json(_marker(path))
    if noted is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    if (noted.get("size"), noted.get("mtime_ns")) != (status.st_size, status.st_mtime_ns):
        return None
    sha256 = noted.get("sha256")
    return sha256 if isinstance(sha256, str) else None


def forget(path: Path) -> None:
    """Drop the note about a file."""
    _marker(path.resolve()).unlink(missing_ok=True)


def checksum(path: Path, progress: Progress | None = None) -> str:
    """The remembered checksum, or a freshly computed one that is remembered from now on."""
    known = remembered(path)
    if known is not None:
        return known
    sha256 = sha256_of(path, progress)
    remember(path, sha256)
    return sha256
