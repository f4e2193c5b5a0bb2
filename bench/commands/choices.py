"""Switches that several benches read alike: lists of names, and where the tasks are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from lsp_server.commands.switches import WrongUsage

# Names the directory of the tasks where the command line does not.
DATA_VARIABLE = "DRAFTLINE_BENCH_DATA"

Name = TypeVar("Name", bound=str)


def listed(switch: str, text: str, choices: Sequence[Name]) -> list[Name]:
    """The names in a list with commas, each once.

    Raises:
        WrongUsage: one is none of ``choices``.
    """
    known = {str(choice): choice for choice in choices}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise WrongUsage(f"{switch} {name!r} is none of {', '.join(choices)}")
    return list(dict.fromkeys(known[name] for name in names))


def data_directory(given: Path | None) -> Path | None:
    """Where the tasks are: what ``--data`` says, else what the environment says, None if neither does.

    Raises:
        WrongUsage: it is no directory.
    """
    variable = os.environ.get(DATA_VARIABLE)
    directory = given or (Path(variable) if variable else None)
    if directory is not None and not directory.is_dir():
        switch = "--data" if given else f"${DATA_VARIABLE}:"
        raise WrongUsage(f"{switch} {directory} is not a directory")
    return directory
