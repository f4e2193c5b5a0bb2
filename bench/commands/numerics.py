"""``draftline bench numerics``: what each way to store and multiply weights costs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.choices import DATA_VARIABLE, data_directory, listed
from bench.commands.common import (
    WrongUsage,
    add_common,
    begin,
    check_count,
    conclude,
    settings_from,
    stoppable,
)
from bench.numerics.rows import ROWS, row_settings
from bench.records import Layout

if TYPE_CHECKING:
    from bench.quality.datasets import InfillTask

COUNT, TOKENS, ANSWERS, ANSWER_TOKENS, REPEATS = 30, 4096, 30, 32, 9
QUICK_COUNT, QUICK_TOKENS, QUICK_ANSWERS, QUICK_ROWS = 2, 256, 2, "int8,bf16"


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "numerics",
        help="compare numerics and layouts of the weights: quality, time and memory",
        description="Loads the model in one numerics after the other, each in a process of its own, and"
        " measures perplexity, right answers on HumanEval-Infilling, time of a forward pass, memory, and how"
        " many greedy answers are those of fp32. A row that fails is shown with its error, and the others go"
        " on; exit status 1 then. Other numerics are converted first, once: fp32 takes 4 bytes for each"
        " weight on disk.",
    )
    parser.add_argument("--rows", metavar="LIST", help=f"of {', '.join(ROWS)} (all)")
    parser.add_argument(
        "--layout",
        metavar="PATTERN=NUMERICS,...",
        help=f"of the row mixed, on int8 ({ROWS['mixed']['mixed']})",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"the files of tasks (${DATA_VARIABLE})")
    parser.add_argument(
        "--repo", type=Path, metavar="PATH", help="source files for text and places (Python's own library)"
    )
    parser.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help=f"gaps of each of two sets ({COUNT})"
    )
    parser.add_argument(
        "--tokens", type=int, default=TOKENS, metavar="N", help=f"predicted for the perplexity ({TOKENS})"
    )
    parser.add_argument(
        "--answers", type=int, default=ANSWERS, metavar="N", help=f"greedy answers ({ANSWERS})"
    )
    parser.add_argument("--no-tests", action="store_true", help="run no code that a model wrote")
    add_common(parser, f"{QUICK_ROWS} with little of everything, about a minute once they are converted")


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    # Imported here: both halves and torch are needed only now.
    from bench.numerics.measure import ROWS_OF_PASSES, Extent, measure, text_of
    from bench.places import default_corpus, sample

    settings = settings_from(args)
    for name in ("count", "tokens", "answers"):
        check_count(f"--{name}", getattr(args, name))
    names = listed("--rows", args.rows or (QUICK_ROWS if args.quick else ",".join(ROWS)), tuple(ROWS))
    repo = args.repo or default_corpus()
    if not repo.is_dir():
        raise WrongUsage(f"--repo {repo} is not a directory")
    count, tokens, answers = args.count, args.tokens, args.answers
    if args.quick:
        count, tokens, answers = (
            min(*pair) for pair in ((count, QUICK_COUNT), (tokens, QUICK_TOKENS), (answers, QUICK_ANSWERS))
        )
    gaps = _gaps(data_directory(args.data), count, settings.seed)
    extent = Extent(
        text=text_of(repo, tokens, settings.seed),
        text_tokens=tokens,
        gaps=gaps,
        places=sample(repo, answers, settings.seed),
        answer_tokens=ANSWER_TOKENS,
        repeats=2 if args.quick else REPEATS,
        tests=not args.no_tests,
    )
    if not extent.places:
        print(f"draftline bench: no source files under {repo}", file=sys.stderr)
        return 1
    config = settings.engine_config()
    options = {
        "rows": names,
        "sets": {name: len(tasks) for name, tasks in gaps.items()},
        "tokens": tokens,
        "answers": len(extent.places),
        "answer_tokens": ANSWER_TOKENS,
        "forward_rows": ROWS_OF_PASSES,
        "repeats": extent.repeats,
        "tests": extent.tests,
        "seed": settings.seed,
    }
    facts = {"model": Path(settings.model).name, "kernels": config.kernels, "threads": config.threads}
    journal, path = begin(args, options, {"draftline": facts})
    with journal, stoppable() as steps:
        for name in names:
            steps.begin(name, extent.steps)
            made = row_settings(name, args.layout)
            for record in measure(name, made, config, settings.completion_options(), extent, steps.advance):
                journal.add(record)
    conclude(journal, path)
    failed = [record for record in journal.records if isinstance(record, Layout) and record.error]
    for record in failed:
        print(f"draftline bench: {record.name}: {record.error}", file=sys.stderr)
    return 1 if failed else 0


def _gaps(data: Path | None, count: int, seed: int) -> dict[str, list[InfillTask]]:
    from bench.quality.datasets import load_random_span, load_single_line, subset

    if data is None:
        print(
            f"draftline bench: right answers are left out: give --data DIR or ${DATA_VARIABLE}",
            file=sys.stderr,
        )
        return {}
    loaders = {"single-line": load_single_line, "random-span": load_random_span}
    return {name: subset(load(data), count, seed) for name, load in loaders.items()}
