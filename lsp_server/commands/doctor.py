"""``draftline doctor``: what this machine, the files and the model are like, and what to do about it."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any, TextIO

from rich.console import Console

from inference import paths
from inference.api import EngineConfig
from inference.diagnosis import files, machine
from inference.diagnosis.measure import Measured, measure
from inference.diagnosis.problems import Problem, failure, find_problems
from inference.errors import DraftlineError
from inference.sharing.inspect import Running, running_engines
from lsp_server import __version__
from lsp_server.commands.doctor_report import print_report
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from
from lsp_server.prompts.fim import find_format
from lsp_server.statistics import Totals
from lsp_server.stdio import clean_stdout

# What a bug report needs to name; the rest of the dependencies rarely matters.
PACKAGES = ("torch", "transformers", "tokenizers", "pygls", "lsprotocol", "numpy", "bitsandbytes")
# Of these, what only some numerics need.
FOR_SOME = ("bitsandbytes",)


@dataclass(frozen=True)
class Report:
    """Everything the command prints.

    Attributes:
        versions: of ours, Python and the packages; "" for one that is missing.
        python_ms: start of the process to start of the command.
        measured: None if the model could not be loaded; ``problems`` says why.
        use: how suggestions were used on this machine so far, as ``draftline/statistics`` tells it.
        engines: processes that servers share now; the measurements are of an engine of the doctor's own.
    """

    versions: dict[str, str]
    python_ms: float
    machine: machine.Machine
    files: files.ModelFiles
    measured: Measured | None
    problems: tuple[Problem, ...]
    use: dict[str, Any] = field(default_factory=dict)
    engines: tuple[Running, ...] = ()

    @property
    def works(self) -> bool:
        """Nothing keeps Draftline from working."""
        return not any(problem.severity == "error" for problem in self.problems)


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser(
        "doctor",
        help="check this installation, measure it, and say what to do about problems",
        description="Checks versions, machine, files and memory, loads the model and measures it for some"
        " seconds. Downloads nothing. Exit status 1 if something keeps Draftline from working.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--fresh", action="store_true", help="forget the stored choice of int8 kernels and probe again"
    )
    add_switches(parser)


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if Draftline works here, 1 if not, 2 for wrong usage."""
    python_ms = 1000 * machine.seconds_since_start()
    try:
        config = settings_from(args).engine_config()
    except WrongUsage as error:
        print(f"draftline doctor: {error}", file=sys.stderr)
        return 2
    with clean_stdout() as out:
        console = Console(file=sys.stderr, highlight=False)
        with console.status("Looking at this machine.") as status:
            report = examine(config, python_ms, lambda message, _: status.update(message), fresh=args.fresh)
        if args.json:
            print(json.dumps(as_json(report), ensure_ascii=False), file=out)
        else:
            print_report(report, _console(out))
    return 0 if report.works else 1


def examine(
    config: EngineConfig,
    python_ms: float,
    on_progress: Callable[[str, float | None], None],
    fresh: bool = False,
) -> Report:
    """Look at everything; errors of the model become problems.

    Args:
        fresh: probe the kernels again, whatever is stored.
    """
    found: list[Problem] = []
    versions = _versions(found)
    host = machine.look(paths.home())
    measured = None
    if not any(problem.severity == "error" for problem in found):
        try:
            measured = measure(config, on_progress, lambda codec: find_format(codec) is not None, fresh)
        except DraftlineError as error:
            found.append(failure(error))
        except (ImportError, OSError, RuntimeError) as error:
            found.append(_unexpected(error))
    # Last: loading the model converts it where needed, and rebuilds what is damaged.
    stored = files.inspect(config)
    found += find_problems(config, host, stored, measured)
    use = Totals.read(paths.statistics_file()).report()
    engines = tuple(running_engines())
    return Report(versions, python_ms, host, stored, measured, tuple(found), use, engines)


def as_json(report: Report) -> dict[str, Any]:
    """The object of ``--json``; ``works`` is what the exit status says."""
    values = asdict(report)
    measured = report.measured
    if measured is not None:
        values["measured"]["memory"]["need"] = measured.memory.need
        values["measured"]["self_test"]["exact"] = measured.self_test.exact
    return {"works": report.works, **values}


def _versions(found: list[Problem]) -> dict[str, str]:
    versions = {"draftline": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = ""
            found.append(
                Problem(
                    "package-missing",
                    f"The package {name} is not installed in {sys.prefix}.",
                    f"Run `{sys.executable} -m pip install {name}`, or install Draftline again.",
                    "warning" if name in FOR_SOME else "error",
                )
            )
    if "+cu" in versions["torch"]:
        found.append(
            Problem(
                "torch-with-cuda",
                f"torch {versions['torch']} is a CUDA build: it works, but takes gigabytes of disk.",
                "Without an NVIDIA GPU the CPU build of torch is enough.",
                "note",
            )
        )
    return versions


def _unexpected(error: Exception) -> Problem:
    return Problem(
        "error",
        f"Loading failed: {type(error).__name__}: {error}",
        "Install Draftline again in a fresh environment; if that does not help, report this.",
        "error",
    )


def _console(out: TextIO) -> Console:
    # `out` is a copy of the real stdout, so that rich still sees a terminal where there is one.
    return Console(file=out, highlight=False)
