"""Finding a pip to download with; environments made by uv have none."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from inference.weights.unavailable import SourceUnavailable


def pip_command() -> list[str]:
    """The start of a command line that runs pip, e.g. ``["/usr/bin/python3", "-m", "pip"]``.

    Tried in order: this environment's pip; the wheel that Python carries for ensurepip, run from
    inside the archive; a pip on the PATH; uv, which downloads one.

    Raises:
        SourceUnavailable: there is none.
    """
    for command in _candidates():
        if _works(command):
            return command
    raise SourceUnavailable(
        "the mirror", "no pip was found to download it with (python -m ensurepip, or uv, would give one)"
    )


def _candidates() -> Iterator[list[str]]:
    if importlib.util.find_spec("pip") is not None:
        yield [sys.executable, "-m", "pip"]
    for wheel in _carried_wheels():
        yield [sys.executable, str(wheel / "pip")]
    for name in ("python3", "python"):
        if found := shutil.which(name):
            yield [found, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            yield [found]
    if found := shutil.which("uv"):
        yield [found, "tool", "run", "pip"]


def _carried_wheels() -> Iterator[Path]:
    directories = []
    if (spec := importlib.util.find_spec("ensurepip")) is not None and spec.origin is not None:
        directories.append(Path(spec.origin).parent / "_bundled")
    # Where distributions that split off the bundled wheels keep them.
    if packages := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        directories.append(Path(packages))
    for directory in directories:
        yield from sorted(directory.glob("pip-*.whl"), reverse=True)


def _works(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            [*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def pip_environment(scratch: Path) -> dict[str, str]:
    """The environment for pip: temporary files where they can be watched, uv's index if only uv has one."""
    environment = dict(os.environ)
    environment |= {"TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if environment.get(name):
            environment.setdefault("PIP_INDEX_URL", environment[name])
    return environment
