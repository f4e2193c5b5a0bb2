"""``draftline bench exactness``: does anything but the prompt decide about the text?"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.choices import DATA_VARIABLE, data_directory
from bench.commands.common import (
    Steps,
    WrongUsage,
    add_common,
    begin,
    check_count,
    conclude,
    models_of,
    prepare_model,
    settings_from,
    stoppable,
)
from bench.journal import Journal
from bench.records import Checked, Restarted
from inference.errors import DraftlineError
from inference.openmp import import_torch
from lsp_server.settings import Settings

if TYPE_CHECKING:
    from bench.exactness.compare import ExactnessBench
    from bench.exactness.prompts import ExactPrompt, Sources
    from bench.exactness.variants import Variants
    from bench.exactness.verdict import Verdict

COUNT, VARIANTS, MAX_PROMPT, TOKENS = 100, 3, 2048, 24
QUICK_COUNT, QUICK_MAX_PROMPT, QUICK_TOKENS = 16, 256, 12
# Answers compared after each change of kernels and threads.
RESTART_PROMPTS = 8
# Differences that are printed one by one.
_SHOWN = 20


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "exactness",
        help="compare tokens and logits over drafters, caches, prefill blocks, threads and kernels",
        description="Answers prompts of many kinds and lengths plainly from nothing cached, and in several"
        " other ways: drafters and lengths of drafts, cache states, prefill blocks, threads, drawn at random"
        " so that all of them come up alike. Compares tokens and logits bit by bit. Exit status 1 if anything"
        " differs although this machine promises equal bits, or if not everything that could make a"
        " difference has happened.",
    )
    parser.add_argument(
        "--repo", type=Path, metavar="PATH", help="source files to take prompts from (Python's own library)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help=f"the files of tasks, for edits (${DATA_VARIABLE})"
    )
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"prompts ({COUNT})")
    parser.add_argument(
        "--variants",
        default=str(VARIANTS),
        metavar="N|all",
        help=f"ways to answer each prompt beside the plain one, drawn at random, or all ({VARIANTS})",
    )
    parser.add_argument(
        "--max-prompt",
        type=int,
        default=MAX_PROMPT,
        metavar="N",
        help=f"longest prompt in tokens; raises --context if need be ({MAX_PROMPT})",
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no prompt later than this")
    parser.add_argument(
        "--restart",
        action=argparse.BooleanOptionalAction,
        help="also change kernels and threads and compare with processes started anew (not with --quick)",
    )
    add_common(parser, f"{QUICK_COUNT} prompts of at most {QUICK_MAX_PROMPT} tokens, under a minute")


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    # Imported here: both halves and torch are needed only now.
    import_torch()
    from bench.exactness.compare import ExactnessBench, differences
    from bench.exactness.prompts import TIMES_LONGER, PromptSource
    from bench.exactness.variants import Variants
    from bench.exactness.verdict import verdict

    settings = settings_from(args)
    each = _variants(args.variants)
    for name in ("count", "max_prompt"):
        check_count("--" + name.replace("_", "-"), getattr(args, name))
    if args.minutes is not None and not args.minutes > 0:
        raise WrongUsage("--minutes must be more than 0")
    count, longest, tokens = args.count, args.max_prompt, TOKENS
    if args.quick:
        count, longest = min(count, QUICK_COUNT), min(longest, QUICK_MAX_PROMPT)
        tokens = QUICK_TOKENS
    settings = _with_context(settings, args.context, longest + TIMES_LONGER * tokens)
    sources = _sources(args, settings.seed)
    prepare_model(settings)
    bench = ExactnessBench(settings.engine_config())
    source = PromptSource(
        bench.runtime.tokenizer,
        bench.runtime.context,
        sources,
        settings.completion_options(),
        tokens,
        longest,
    )
    variants = Variants(settings.seed, bench.threads)
    options = {
        "count": count,
        "kinds": source.shares,
        "variants": args.variants,
        "max_prompt": longest,
        "tokens": tokens,
        "minutes": args.minutes,
        "seed": settings.seed,
    }
    facts = {
        **models_of(settings),
        "kernels": settings.kernels,
        "context": bench.runtime.context,
        "promised": bench.promised,
    }
    journal, path = begin(args, options, {"draftline": facts})
    restart = args.restart if args.restart is not None else not args.quick
    failure = ""
    with journal, stoppable() as steps:
        short = _compare(bench, source.prompts(count), variants, each, journal, steps, count, args.minutes)
        # Where the bits may depend on threads and kernels there is nothing to compare.
        if restart and bench.threads:
            failure = _restart(bench, short, journal, steps)
    conclude(journal, path)
    checked = [record for record in journal.records if isinstance(record, Checked)]
    restarted = [record for record in journal.records if isinstance(record, Restarted)]
    result = verdict(checked, variants.levels(), bench.promised, restarted)
    _say(result, list(differences(checked)))
    if failure:
        print(f"draftline bench: {failure} What was measured before counts.", file=sys.stderr)
    return 0 if result.passed and not failure else 1


def _variants(text: str) -> int | None:
    """How many for each prompt, None for all."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise WrongUsage(f"--variants {text!r} must be 1 or more, or all")
    return int(text)


def _with_context(settings: Settings, asked: int | None, needed: int) -> Settings:
    """Room for the longest prompt, unless the command line says how much there is."""
    if asked is None:
        return replace(settings, context=max(settings.context, needed))
    if asked < needed:
        raise WrongUsage(f"--context {asked} has no room for {needed} tokens of prompt and answer")
    return settings


def _sources(args: argparse.Namespace, seed: int) -> Sources:
    from bench.exactness.prompts import Sources
    from bench.places import default_corpus
    from bench.quality.datasets import load_edits

    repo = args.repo or default_corpus()
    if not repo.is_dir():
        raise WrongUsage(f"--repo {repo} is not a directory")
    data = data_directory(args.data)
    return Sources(repo, load_edits(data) if data is not None else (), seed)


def _compare(
    bench: ExactnessBench,
    prompts: Iterator[ExactPrompt],
    variants: Variants,
    each: int | None,
    journal: Journal,
    steps: Steps,
    count: int,
    minutes: float | None,
) -> list[ExactPrompt]:
    """All prompts; returns some short ones."""
    from bench.exactness.prompts import is_long

    began = time.monotonic()
    short: list[ExactPrompt] = []
    steps.begin("prompts", count)
    for prompt in prompts:
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            break
        ways = variants.every() if each is None else variants.draw(each, len(prompt.request.prompt))
        journal.add(bench.compare(prompt, ways, variants.temperature()))
        if len(short) < RESTART_PROMPTS and not is_long(prompt):
            short.append(prompt)
        steps.advance()
    return short


def _restart(bench: ExactnessBench, prompts: Sequence[ExactPrompt], journal: Journal, steps: Steps) -> str:
    """Returns why it was given up, "" if it was not."""
    from bench.exactness.restart import CHANGES, after_changes
    from bench.peers.base import PeerFailed

    steps.begin("changes of kernels and threads", CHANGES)
    try:
        for record in after_changes(bench, [prompt.request for prompt in prompts]):
            journal.add(record)
            steps.advance()
    except (PeerFailed, DraftlineError) as error:
        return str(error)
    return ""


def _say(result: Verdict, differences: Sequence[str]) -> None:
    """The verdict in words; the tables have the counts."""
    total = result.total
    share = total.identical / total.answers if total.answers else 0.0
    print(
        f"identical: {total.identical} of {total.answers} answers ({share:.1%}) to {result.prompts} prompts; "
        f"equal bits are {'promised' if result.promised else 'not promised'} here"
    )
    compared, same = result.restarts
    if compared:
        print(f"after changes of kernels and threads: {same} of {compared} as in processes started anew")
    for line in differences[:_SHOWN]:
        print(f"differs: {line}")
    if len(differences) > _SHOWN:
        print(f"and {len(differences) - _SHOWN} more; they are in the results file")
    if not result.meaningful:
        missing = ", ".join(result.missing) or "drafted, accepted, rejected or cached tokens"
        print(f"not seen: {missing}; so this run proves nothing: use more prompts", file=sys.stderr)
