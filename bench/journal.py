"""Writing and reading results files."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TextIO

from bench.records import RECORDS, Record, Run, to_json


class BadResults(Exception):
    """A results file cannot be read; the message says where and why."""


class Journal:
    """Collects the records of one run and writes each at once, so that a stopped run keeps what it has.

    Use as a context manager; ``path`` None keeps the records in memory only.
    """

    def __init__(self, path: Path | None, run: Run) -> None:
        """Opens ``path`` for appending.

        Raises:
            OSError: it cannot be written.
        """
        self.run = run
        self.id = f"{run.bench}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
        self.records: list[Record] = []
        self._file: TextIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
        self.add(run)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, record: Record) -> None:
        """Keep and write one record."""
        self.records.append(record)
        if self._file is not None:
            print(json.dumps(to_json(record, self.id), ensure_ascii=False), file=self._file, flush=True)


@dataclass(frozen=True)
class RunResults:
    """One run of a results file: its header and its records in order."""

    id: str
    run: Run
    records: list[Record]


def load(paths: Iterable[Path]) -> list[RunResults]:
    """All runs in some results files, in order of appearance.

    Raises:
        BadResults: a line is no record, or belongs to a run that has no header.
        OSError
    """
    runs: dict[str, RunResults] = {}
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    _add_line(runs, line, f"{path}:{number}")
    return list(runs.values())


def _add_line(runs: dict[str, RunResults], line: str, where: str) -> None:
    try:
        data: dict[str, Any] = json.loads(line)
        cls = RECORDS[data.pop("record")]
        run = str(data.pop("run"))
        known = {field.name for field in fields(cls)}
        record = cls(**{name: value for name, value in data.items() if name in known})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadResults(f"{where} is no record of a results file: {error!r}") from error
    if isinstance(record, Run):
        runs[run] = RunResults(run, record, [])
    elif run not in runs:
        raise BadResults(f"{where} belongs to the run {run}, whose first line is missing")
    else:
        runs[run].records.append(record)


def command_line() -> str:
    """This process's command line as a user would type it."""
    return shlex.join(["draftline", *sys.argv[1:]])
