"""The choice of kernels on disk: one small file for each machine identity, so that homes can be shared."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from inference import paths
from inference.errors import DraftlineError
from inference.probe.race import KernelReport
from inference.weights.disk import not_writable_explained, read_json, write_json

FORMAT = 1


@dataclass(frozen=True)
class Stored:
    """What a file holds. ``date`` is the UTC time of the probe, ISO 8601."""

    kernel: str
    date: str
    reports: tuple[KernelReport, ...]


def file_of(identity: dict[str, str]) -> Path:
    """Where the choice for this identity is kept."""
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return paths.kernels_dir() / f"choice-{key[:16]}.json"


def read(identity: dict[str, str]) -> Stored | None:
    """The stored choice; None if there is none, or the file is damaged or another machine's."""
    raw = read_json(file_of(identity))
    if raw is None or raw.get("format") != FORMAT or raw.get("identity") != identity:
        return None
    try:
        reports = tuple(_report(entry) for entry in raw["reports"])
        stored = Stored(_text(raw["kernel"]), _text(raw["date"]), reports)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return stored if any(r.name == stored.kernel and r.exact for r in reports) else None


def write(identity: dict[str, str], kernel: str, reports: Sequence[KernelReport]) -> bool:
    """Replace the file atomically; False if the home cannot be written."""
    file = file_of(identity)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entries = [asdict(report) for report in reports]
    value = {"format": FORMAT, "identity": identity, "kernel": kernel, "date": now, "reports": entries}
    try:
        # Compiled functions live here too, and are only loaded from a directory that nobody else can write.
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(file, value)
    except (OSError, DraftlineError):
        return False
    return True


def forget() -> None:
    """Delete the choices of all identities, so that the next start probes again.

    Raises:
        HomeNotWritable
    """
    with not_writable_explained(), contextlib.suppress(FileNotFoundError):
        for file in paths.kernels_dir().glob("choice-*.json"):
            file.unlink(missing_ok=True)


def _report(entry: Any) -> KernelReport:
    times = {int(width): float(ms) for width, ms in entry["row_ms"].items()}
    if not all(width > 0 and ms >= 0 and math.isfinite(ms) for width, ms in times.items()):
        raise ValueError("not a time")
    widths = tuple(int(width) for width in entry["widths"])
    return KernelReport(
        _text(entry["name"]), _text(entry["problem"]), times, widths, entry["gave_up"] is True
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
