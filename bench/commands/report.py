"""``draftline bench report``: tables and plots from results files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.commands.common import WrongUsage
from bench.journal import BadResults, RunResults, load


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = benches.add_parser(
        "report",
        help="make tables and plots from results files",
        description="Makes Markdown tables, and plots if asked, from the results files of the other benches."
        " The same files give the same text.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="results, JSON lines")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write Markdown here instead of printing it; in a file that exists, only what stands between"
        " <!-- bench:begin --> and <!-- bench:end -->",
    )
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write plots as PNG; needs matplotlib")


def run(args: argparse.Namespace) -> int:
    """Make the report; returns the exit status."""
    from bench.report.tables import markdown

    for path in args.files:
        if not path.is_file():
            raise WrongUsage(f"{path} is no file; give results files that a bench has written")
    try:
        runs = load(args.files)
    except BadResults as error:
        print(f"draftline bench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        raise WrongUsage(f"{error.filename} cannot be read: {error.strerror}") from error
    if not runs:
        print("draftline bench: no results in these files; was a bench stopped at once?", file=sys.stderr)
        return 1
    tables = markdown(runs)
    if args.out is None:
        print(tables, end="")
    else:
        _write(args.out, tables)
    if args.plots is None:
        return 0
    return _plot(args.plots, runs)


def _write(path: Path, tables: str) -> None:
    """Write a new file, or the tables of one that exists."""
    from bench.report.document import BEGIN, END, NoMarkers, replaced, whole

    try:
        text = replaced(path.read_text(encoding="utf-8"), tables) if path.exists() else whole(tables)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except NoMarkers:
        # It may be anything, the results themselves by a slip of the hand.
        raise WrongUsage(
            f"--out {path} exists and has no place for tables; put the lines {BEGIN} and {END} into it,"
            " or name a new file"
        ) from None
    except UnicodeDecodeError:
        raise WrongUsage(f"--out {path} exists and is no text; name another file") from None
    except OSError as error:
        raise WrongUsage(f"--out {path} cannot be written: {error.strerror}") from error
    print(f"tables: {path}", file=sys.stderr)


def _plot(directory: Path, runs: list[RunResults]) -> int:
    try:
        from bench.report.plots import draw
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        print("draftline bench: plots need matplotlib: pip install matplotlib", file=sys.stderr)
        return 1
    try:
        paths = draw(runs, directory)
    except OSError as error:
        raise WrongUsage(f"--plots {directory} cannot be written: {error.strerror}") from error
    for path in paths:
        print(f"plot: {path}", file=sys.stderr)
    if not paths:
        print("no plots: these results have nothing to draw", file=sys.stderr)
    return 0
