"""``draftline bench soak``: does a long day leave anything behind?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.common import (
    WrongUsage,
    add_common,
    begin,
    check_count,
    conclude,
    prepare_model,
    settings_from,
    stoppable,
)
from bench.records import Sample
from inference.api import GenerationRequest

if TYPE_CHECKING:
    from inference.engine import Engine

REQUESTS, QUICK_REQUESTS = 10_000, 250
# What is promised for Python, its libraries, the tokenizer and work space.
ALLOWANCE_MB = 400
# Samples of a run, so that its file stays small.
_SAMPLES = 100
_FEWEST_BETWEEN = 10
# Documents that fill the caches at first, at most.
_MOST_FILLING = 100


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "soak",
        help="send thousands of requests and watch memory, threads and files",
        description="Types in many files as in a long day: short requests to one engine, some outdated by the"
        " next key, some cancelled, files edited, opened and closed. Exit status 1 if memory grew or exceeded"
        " what is promised, if threads or open files grew, or if a request failed or was never answered.",
    )
    parser.add_argument(
        "--repo", type=Path, metavar="PATH", help="source files to type in (Python's own library)"
    )
    parser.add_argument("--requests", type=int, default=REQUESTS, metavar="N", help=f"how many ({REQUESTS})")
    parser.add_argument("--minutes", type=float, metavar="M", help="send none later than this")
    parser.add_argument(
        "--every", type=int, metavar="N", help=f"requests between two samples (for {_SAMPLES} samples)"
    )
    parser.add_argument(
        "--allowance",
        type=int,
        default=ALLOWANCE_MB,
        metavar="MB",
        help=f"private memory beside packed weights and the KV budget ({ALLOWANCE_MB})",
    )
    add_common(parser, f"{QUICK_REQUESTS} requests, under a minute")


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    # Imported here: both halves and torch are needed only now.
    from bench.places import default_corpus
    from bench.soak.drive import Soak
    from bench.soak.editor import PROMPT_TOKENS, Editor, NoFiles
    from bench.soak.verdict import summarise
    from inference.engine import Engine
    from inference.precision import precision_of
    from lsp_server.completion.reasons import NoSuggestion

    settings = settings_from(args)
    check_count("--requests", args.requests)
    check_count("--allowance", args.allowance)
    if args.every is not None:
        check_count("--every", args.every)
    if args.minutes is not None and not args.minutes > 0:
        raise WrongUsage("--minutes must be more than 0")
    repo = args.repo or default_corpus()
    if not repo.is_dir():
        raise WrongUsage(f"--repo {repo} is not a directory")
    requests = min(args.requests, QUICK_REQUESTS) if args.quick else args.requests
    every = args.every or max(requests // _SAMPLES, _FEWEST_BETWEEN)
    prepare_model(settings)
    config = settings.engine_config()
    engine = Engine(config)
    engine.start()
    try:
        engine.wait_ready()
        try:
            editor = Editor(
                engine.tokenizer, engine.context, settings.completion_options(), repo, settings.seed
            )
        except (NoFiles, NoSuggestion) as error:
            print(f"draftline bench: {error}", file=sys.stderr)
            return 1
        runtime = engine.runtime
        options = {
            "requests": requests,
            "every": every,
            "minutes": args.minutes,
            "prompt_tokens": PROMPT_TOKENS,
            "seed": settings.seed,
        }
        facts = {
            "model": runtime.prepared.source,
            "numerics": str(precision_of(config)),
            "draft": config.draft,
            "weight_bytes": runtime.decoder.weights.private_bytes,
            "kv_budget_mb": config.kv_budget_mb,
            "allowance_mb": args.allowance,
        }
        journal, path = begin(args, options, {"draftline": facts})
        with journal, stoppable() as steps:
            soak = Soak(engine, lambda: editor.documents, args.allowance * 1_000_000)
            steps.begin("warm-up", 2)
            soak.warm_up(_blocks(engine))
            steps.advance()
            soak.fill(_filling(engine))
            steps.advance()
            steps.begin("requests", requests)
            seconds = None if args.minutes is None else 60 * args.minutes
            for sample in soak.run(editor.steps(requests), every, seconds):
                if sample is not None:
                    journal.add(sample)
                steps.advance()
    finally:
        engine.close()
    conclude(journal, path)
    summary = summarise(record for record in journal.records if isinstance(record, Sample))
    problems = summary.problems if summary is not None else ["nothing was measured"]
    for problem in problems:
        print(f"draftline bench: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _blocks(engine: Engine) -> Iterator[GenerationRequest]:
    """A prompt of each size that a block may have: the library keeps a kernel for each."""
    from bench.soak.editor import PROMPT_TOKENS
    from bench.speculation.roofline import random_tokens

    runtime = engine.runtime
    tokens = random_tokens(runtime, min(runtime.options.prefill_chunk, PROMPT_TOKENS, runtime.context - 1))
    for size in range(1, len(tokens) + 1):
        yield GenerationRequest(tuple(tokens[:size]), max_new_tokens=1, use_cache=False)


def _filling(engine: Engine) -> Iterator[GenerationRequest]:
    """Requests of many documents, as long as the prompts and answers to come."""
    from bench.soak.editor import ANSWERS, PROMPT_TOKENS
    from bench.speculation.roofline import random_tokens

    runtime = engine.runtime
    length = min(PROMPT_TOKENS + max(ANSWERS), runtime.context - 1)
    tokens = random_tokens(runtime, length)
    for number in range(_MOST_FILLING):
        # Each begins with another token, or they would share their keys and values.
        prompt = (number, *tokens[1:])
        yield GenerationRequest(prompt, document=f"filling-{number}", max_new_tokens=1)
