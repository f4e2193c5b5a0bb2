"""Progress of long steps on a terminal: bytes, rate and time left, on stderr."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


class TerminalProgress:
    """Implements ``inference.weights.progress.Progress``; use as a context manager.

    Where stderr is no terminal, one plain line per step is printed instead of a moving bar.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> TerminalProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, label: str, total: int | None) -> None:
        """Show a new step."""
        if self._bars.disable:
            self._console.print(label, soft_wrap=True, markup=False)
        else:
            self._task = self._bars.add_task(label, total=total)

    def advance(self, count: int) -> None:
        """Move the bar by ``count`` bytes."""
        if self._task is not None:
            self._bars.advance(self._task, count)

    def end(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
