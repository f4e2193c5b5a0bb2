"""The user's weights in a home of one's own, so that tests do not count as use."""

from __future__ import annotations

from pathlib import Path

from inference import paths


def linked_home(directory: Path) -> Path:
    """A DRAFTLINE_HOME inside ``directory``: weights and kernels are the user's, all else is new."""
    new = directory / "draftline"
    new.mkdir()
    for place in (paths.downloads_dir(), paths.models_dir(), paths.verified_dir(), paths.kernels_dir()):
        place.mkdir(parents=True, exist_ok=True)
        (new / place.name).symlink_to(place, target_is_directory=True)
    return new
