"""``draftline bench``: measurements that anyone can repeat."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from inference.weights import store
from lsp_server.commands.progress import TerminalProgress
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from

QUICK_COUNT = 2


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser("bench", help="measure this machine")
    benches = parser.add_subparsers(dest="bench", metavar="BENCH", required=True)
    exactness = benches.add_parser(
        "exactness",
        help="compare tokens and logits over drafters, caches and prefill blocks",
        description="Answers real prompts in every combination of drafter, cache and prefill block size and"
        " compares tokens and logits bit by bit. Exit status 1 if anything differs although this machine"
        " promises equal bits, or if nothing was drafted, accepted, rejected or cached.",
    )
    exactness.add_argument(
        "--repo", type=Path, metavar="PATH", help="source files to take prompts from (Python's own library)"
    )
    exactness.add_argument("--count", type=int, default=20, metavar="N", help="prompts (20)")
    exactness.add_argument("--quick", action="store_true", help=f"{QUICK_COUNT} prompts, under a minute")
    exactness.add_argument("--out", type=Path, metavar="FILE", help="append each comparison as a JSON line")
    add_switches(exactness)


def run(args: argparse.Namespace) -> int:
    """Run one bench; returns the exit status."""
    try:
        settings = settings_from(args)
    except WrongUsage as error:
        print(f"draftline bench: {error}", file=sys.stderr)
        return 2
    root = args.repo
    if root is not None and not root.is_dir():
        print(f"draftline bench: --repo {root} is not a directory", file=sys.stderr)
        return 2
    if args.count < 1:
        print("draftline bench: --count must be 1 or more", file=sys.stderr)
        return 2
    return _exactness(args, settings.engine_config(), settings.seed)


def _exactness(args: argparse.Namespace, config: object, seed: int) -> int:
    # Imported here: both halves and torch are needed only now.
    from bench.exactness import QUICK_VARIANTS, VARIANTS, Comparison, ExactnessBench
    from bench.places import default_corpus, sample
    from inference.api import EngineConfig

    assert isinstance(config, EngineConfig)
    root = args.repo or default_corpus()
    places = sample(root, QUICK_COUNT if args.quick else args.count, seed)
    if not places:
        print(f"draftline bench: no source files under {root}", file=sys.stderr)
        return 1
    with TerminalProgress() as progress:
        store.prepare(config.model, config.numerics, allow_download=config.allow_download, progress=progress)
    bench = ExactnessBench(config, QUICK_VARIANTS if args.quick else VARIANTS)
    console = Console(stderr=True)
    comparisons: list[Comparison] = []
    out: TextIO | None = args.out.open("a", encoding="utf-8") if args.out else None
    try:
        with _bar(console) as bar:
            task = bar.add_task("prompts", total=len(places))
            for place in places:
                for comparison in bench.compare(place):
                    comparisons.append(comparison)
                    if out is not None:
                        print(json.dumps(comparison.as_json(), ensure_ascii=False), file=out, flush=True)
                bar.advance(task)
    except KeyboardInterrupt:
        print("stopped; what was measured up to here counts", file=sys.stderr)
    finally:
        if out is not None:
            out.close()
    verdict = bench.verdict(comparisons)
    share = verdict.identical / verdict.comparisons if verdict.comparisons else 0.0
    print(
        f"identical: {verdict.identical} of {verdict.comparisons} answers ({share:.1%}); "
        f"equal bits are {'promised' if verdict.promised else 'not promised'} here"
    )
    print(
        f"drafted {verdict.drafted}, accepted {verdict.accepted}, rejected {verdict.rejected} tokens; "
        f"{verdict.cached} answers used the cache"
    )
    for comparison in comparisons:
        if not (comparison.same_tokens and comparison.same_logits):
            print(f"differs: {comparison}")
    if not verdict.meaningful:
        print("not all of these happened, so this run proves nothing: use more prompts", file=sys.stderr)
    return 0 if verdict.passed else 1


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
