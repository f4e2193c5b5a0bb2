"""Getting the original weights of a catalog entry: the hub first, then the mirror."""

from __future__ import annotations

from pathlib import Path

from inference import paths
from inference.weights.catalog import CatalogEntry
from inference.weights.progress import Progress


def present(entry: CatalogEntry) -> Path | None:
    """The original on this disk (ours or the hub's cache), by size only."""
    path = paths.downloads_dir() / entry.file
    return path if path.is_file() and path.stat().st_size == entry.bytes else None


def locate(entry: CatalogEntry, progress: Progress) -> Path | None:
    """The verified original on this disk, or None."""
    return present(entry)


def own_files(entry: CatalogEntry) -> tuple[Path, ...]:
    """What a fetch may have left in the downloads directory."""
    return ()


def fetch(entry: CatalogEntry, progress: Progress) -> Path:
    """Download and verify."""
    raise NotImplementedError
