"""Where Draftline keeps its files on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def home() -> Path:
    """The root of all files Draftline writes: ``$DRAFTLINE_HOME``, else the user's cache directory."""
    override = os.environ.get("DRAFTLINE_HOME")
    if override:
        return Path(override).expanduser()
    return platformdirs.user_cache_path("draftline")


def downloads_dir() -> Path:
    """Original weight files as their makers published them."""
    return home() / "downloads"


def models_dir() -> Path:
    """Converted models, one directory each, ready to be mapped into memory."""
    return home() / "models"


def locks_dir() -> Path:
    """Lock files that keep two processes from doing the same work twice."""
    return home() / "locks"


def verified_dir() -> Path:
    """Notes about files whose checksum is known, so that it need not be computed at every start."""
    return home() / "verified"


def kernels_dir() -> Path:
    """Functions compiled for this machine's processor."""
    return home() / "kernels"


def statistics_file() -> Path:
    """Counts of how suggestions were used; nothing else."""
    return home() / "statistics.json"
