"""Writing and reading results files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import cattrs

from bench.records import RECORDS, Record, Run, to_json
from inference.errors import DraftlineError


class CannotRecord(DraftlineError):
    """The results file cannot take another line."""

    code = "cannot-record"


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
            cut = _is_cut(path)
            self._file = path.open("a", encoding="utf-8")
            if cut:
                self._file.write("\n")
        self.add(run)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # said before, by the line that did not fit
                self._file.close()

    def add(self, record: Record) -> None:
        """Keep and write one record."""
        self.records.append(record)
        if self._file is None:
            return
        try:
            print(json.dumps(to_json(record, self.id), ensure_ascii=False), file=self._file, flush=True)
        except OSError as error:
            raise CannotRecord(
                f"The results cannot be written any more: {error.strerror}.",
                "What was measured before is in the file; make room, or choose another --out.",
            ) from error


@dataclass(frozen=True)
class RunResults:
    """One run of a results file: its header and its records in order."""

    id: str
    run: Run
    records: list[Record]


def load(paths: Iterable[Path], warn: Callable[[str], None] | None = None) -> list[RunResults]:
    """All runs in some results files, in order of appearance.

    A run that was killed leaves an incomplete line, at the end of the file or before the next run of the same
    file. It is left out, and ``warn`` is told (stderr if None).

    Raises:
        BadResults: a line is no record, or belongs to a run that has no header.
        OSError
    """
    runs: dict[str, RunResults] = {}
    for path in paths:
        # As bytes, because an incomplete line may end inside a character.
        lines = [(n, line) for n, line in enumerate(path.read_bytes().split(b"\n"), 1) if line.strip()]
        for place, (number, line) in enumerate(lines):
            where = f"{path}:{number}"
            data = _object(line)
            if data is not None:
                _add(runs, data, where)
            elif place > 0 and (place + 1 == len(lines) or _is_header(lines[place + 1][1])):
                (warn or _to_stderr)(
                    f"{where} is incomplete and left out: that run was stopped while writing"
                )
            else:
                raise BadResults(f"{where} is no line of a results file")
    return list(runs.values())


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _is_header(line: bytes) -> bool:
    data = _object(line)
    return data is not None and data.get("record") == Run.RECORD


def _add(runs: dict[str, RunResults], data: dict[str, Any], where: str) -> None:
    kind, run = data.get("record"), data.get("run")
    if kind not in RECORDS or not isinstance(run, str):
        raise BadResults(f"{where} is no record of a results file")
    try:
        # Checks the types too; fields of a later version are left out.
        record = cattrs.structure(data, RECORDS[kind])
    except cattrs.BaseValidationError as error:
        reasons = "; ".join(cattrs.transform_error(error))
        raise BadResults(f"{where} is no {kind} record: {reasons}") from error
    if isinstance(record, Run):
        runs[run] = RunResults(run, record, [])
    elif run not in runs:
        raise BadResults(f"{where} belongs to the run {run}, whose first line is missing")
    else:
        runs[run].records.append(record)


def _to_stderr(message: str) -> None:
    print(f"draftline bench: {message}", file=sys.stderr)


def _is_cut(path: Path) -> bool:
    """Whether the last line of a file is incomplete, as a killed run leaves it."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def command_line() -> str:
    """This process's command line as a user would type it.

    Results are shown to others: of a path from the root only the last part is kept, of an address no
    credentials.
    """
    return shlex.join(["draftline", *map(_shown, sys.argv[1:])])


def _shown(word: str) -> str:
    parts = re.split(r"([=,])", word)
    for at, part in enumerate(parts):
        scheme, sign, rest = part.partition("://")
        if sign:
            host, slash, path = rest.partition("/")
            parts[at] = scheme + sign + host.rpartition("@")[2] + slash + path
        elif Path(part).is_absolute():
            parts[at] = Path(part).name
    return "".join(parts)
