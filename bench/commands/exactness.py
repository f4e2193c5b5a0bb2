"""``draftline bench exactness``: do drafter, cache and prefill blocks leave the text alone?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.commands.common import (
    WrongUsage,
    add_common,
    begin,
    check_count,
    models_of,
    prepare_model,
    settings_from,
    stoppable,
)
from bench.records import Compared

QUICK_COUNT = 2


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "exactness",
        help="compare tokens and logits over drafters, caches and prefill blocks",
        description="Answers real prompts in every combination of drafter, cache and prefill block size and"
        " compares tokens and logits bit by bit. Exit status 1 if anything differs although this machine"
        " promises equal bits, or if nothing was drafted, accepted, rejected or cached.",
    )
    parser.add_argument(
        "--repo", type=Path, metavar="PATH", help="source files to take prompts from (Python's own library)"
    )
    parser.add_argument("--count", type=int, default=20, metavar="N", help="prompts (20)")
    add_common(parser, f"{QUICK_COUNT} prompts, under a minute")


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    # Imported here: both halves and torch are needed only now.
    from bench.exactness import QUICK_VARIANTS, VARIANTS, ExactnessBench, verdict
    from bench.places import default_corpus, sample

    settings = settings_from(args)
    check_count("--count", args.count)
    if args.repo is not None and not args.repo.is_dir():
        raise WrongUsage(f"--repo {args.repo} is not a directory")
    root = args.repo or default_corpus()
    places = sample(root, QUICK_COUNT if args.quick else args.count, settings.seed)
    if not places:
        print(f"draftline bench: no source files under {root}", file=sys.stderr)
        return 1
    prepare_model(settings)
    options = settings.completion_options()
    bench = ExactnessBench(settings.engine_config(), options, QUICK_VARIANTS if args.quick else VARIANTS)
    facts_of_run = {"count": len(places), "seed": settings.seed, "temperature": settings.temperature}
    facts = {**models_of(settings), "promised": bench.promised}
    journal, path = begin(args, facts_of_run, {"draftline": facts})
    with journal, stoppable() as steps:
        steps.begin("prompts", len(places))
        for place in places:
            for comparison in bench.compare(place):
                journal.add(comparison)
            steps.advance()
    compared = [record for record in journal.records if isinstance(record, Compared)]
    result = verdict(compared, bench.promised)
    share = result.identical / result.comparisons if result.comparisons else 0.0
    print(
        f"identical: {result.identical} of {result.comparisons} answers ({share:.1%}); "
        f"equal bits are {'promised' if result.promised else 'not promised'} here"
    )
    print(
        f"drafted {result.drafted}, accepted {result.accepted}, rejected {result.rejected} tokens; "
        f"{result.cached} answers used the cache"
    )
    for record in compared:
        if not (record.same_tokens and record.same_logits):
            print(f"differs: {record}")
    if not result.meaningful:
        print("not all of these happened, so this run proves nothing: use more prompts", file=sys.stderr)
    print(f"results: {path}", file=sys.stderr)
    return 0 if result.passed else 1
