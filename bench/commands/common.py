"""What all benches share on the command line: switches, the model, the results file, progress, Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from bench.commands.choices import listed
from bench.journal import Journal, RunResults, command_line
from bench.machine import draftline, machine
from bench.records import Run
from inference import paths
from inference.api import NUMERICS
from inference.precision import precision_of
from inference.weights import store
from lsp_server.commands.progress import TerminalProgress
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from
from lsp_server.settings import Settings

__all__ = [
    "Steps",
    "WrongUsage",
    "add_common",
    "begin",
    "check_count",
    "conclude",
    "in_each",
    "models_of",
    "named",
    "prepare_model",
    "settings_from",
    "stoppable",
]


def add_common(parser: argparse.ArgumentParser, quick: str) -> None:
    """Add ``--quick`` (``quick`` says what it does), ``--out`` and the shared switches."""
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="append the results as JSON lines (a new file below the cache directory)",
    )
    add_switches(parser)


def check_count(name: str, value: int) -> None:
    """Raises:
    WrongUsage: ``value`` is not positive.
    """
    if value < 1:
        raise WrongUsage(f"{name} must be 1 or more")


def models_of(settings: Settings) -> dict[str, Any]:
    """What a system says of the models that it runs; the draft model only if there is one."""
    draft = {} if settings.draft_model is None else {"draft_model": settings.draft_model}
    return {"model": settings.model, **draft, "numerics": named(settings)}


def prepare_model(settings: Settings) -> None:
    """Fetch and convert the model, and the draft model, if that is allowed and needed; shows progress.

    Raises:
        DraftlineError: with the reason and the next step.
    """
    config = settings.engine_config()
    with TerminalProgress() as progress:
        for model, mixed in ((config.model, config.mixed), (config.draft_model, "")):
            if model is not None:
                store.prepare(
                    model,
                    config.numerics,
                    allow_download=config.allow_download,
                    progress=progress,
                    mixed=mixed,
                )


def in_each(numerics: str | None, settings: Settings) -> list[Settings]:
    """The settings with each numerics of a list with commas; as they are without a list.

    Raises:
        WrongUsage: one of them is unknown.
    """
    if numerics is None:
        return [settings]
    return [replace(settings, numerics=name) for name in listed("--numerics", numerics, NUMERICS)]


def named(settings: Settings) -> str:
    """How records name the numerics of an engine with these settings."""
    return str(precision_of(settings.engine_config()))


def begin(
    args: argparse.Namespace, options: dict[str, Any], systems: dict[str, dict[str, Any]]
) -> tuple[Journal, Path]:
    """Open the results file and write the run's header.

    Args:
        options: everything that decides what is measured.
        systems: what each system says of itself; Draftline's version is added to entries whose name
            begins with "draftline".

    Raises:
        WrongUsage: the file cannot be written.
    """
    path: Path = args.out or _default_path(args.bench)
    described = {
        name: {**draftline(), **facts} if name.startswith("draftline") else facts
        for name, facts in systems.items()
    }
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = Run(args.bench, command_line(), date, bool(args.quick), machine(), options, described)
    try:
        return Journal(path, run), path
    except OSError as error:
        raise WrongUsage(f"--out {path} cannot be written: {error.strerror}") from error


class Steps:
    """A progress bar on stderr; where that is no terminal, a line for every tenth of the way."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._name, self._total, self._done = "", 0, 0

    def __enter__(self) -> Steps:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, name: str, total: int) -> None:
        """A new phase of ``total`` steps."""
        self._name, self._total, self._done = name, total, 0
        if self._bar.disable:
            self._console.print(f"{name}: 0 of {total}", markup=False, soft_wrap=True)
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=total)

    def advance(self) -> None:
        """One step is done."""
        self._done += 1
        if self._task is not None:
            self._bar.advance(self._task)
        elif self._done * 10 // max(self._total, 1) > (self._done - 1) * 10 // max(self._total, 1):
            self._console.print(f"{self._name}: {self._done} of {self._total}", markup=False, soft_wrap=True)


@contextlib.contextmanager
def stoppable() -> Iterator[Steps]:
    """A progress bar around the measuring; Ctrl-C ends the block and keeps what was measured."""
    try:
        with Steps() as steps:
            yield steps
    except KeyboardInterrupt:
        print("stopped; what was measured up to here counts", file=sys.stderr)


def conclude(journal: Journal, path: Path) -> None:
    """Print the tables of a run and where its lines are."""
    from bench.report.tables import markdown

    print(markdown([RunResults(journal.id, journal.run, journal.records[1:])]))
    print(f"results: {path}", file=sys.stderr)


def _default_path(bench: str) -> Path:
    return paths.home() / "bench" / f"{bench}-{time.strftime('%Y%m%dT%H%M%S')}.jsonl"
