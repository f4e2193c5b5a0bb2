"""Output of the commands of this directory, to be kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.machine import draftline, machine


def where() -> str:
    """The machine and the version, for the head of an output."""
    here, version = machine(), draftline()
    return f"{here['cpu']}, {here['cores']} cores; Draftline {version['version']}, {version['commit']}"


def write(file: Path | None, lines: Iterable[str]) -> None:
    """Write the lines, unless there is no file."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
