"""``draftline bench quality``: how often answers are right, and what each part of the way to them adds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.choices import DATA_VARIABLE, data_directory, listed
from bench.commands.common import (
    Steps,
    WrongUsage,
    add_common,
    begin,
    check_count,
    conclude,
    in_each,
    named,
    prepare_model,
    settings_from,
    stoppable,
)
from inference.api import NUMERICS, Draft
from inference.errors import DraftlineError
from inference.openmp import import_torch
from lsp_server.commands.progress import TerminalProgress
from lsp_server.settings import Settings

if TYPE_CHECKING:
    from bench.peers.base import Decoder
    from bench.peers.draftline_engine import DraftlineDecoder
    from bench.quality.answers import Candidate, Infiller
    from bench.quality.datasets import EditTask, InfillTask

SINGLE_LINE, RANDOM_SPAN, EDIT = SETS = ("single-line", "random-span", "edit")
REPO = "repo"
COUNT = 100
QUICK_COUNTS = {SINGLE_LINE: 8, RANDOM_SPAN: 8, EDIT: 2, REPO: 4}
# For each set; a task that was begun is answered.
QUICK_SECONDS = 12.0
VARIANTS = (
    "spm/all,spm/none,spm/no-stops,spm/oracle,spm-unhealed/all,"
    "line-in-middle/all,line-in-middle-unhealed/all,lines-in-middle/all,psm/all,psm-unhealed/all"
)
# For the set "repo": each source of context against none.
REPO_VARIANTS = "spm/all,+scope,+imports,+definitions,+recent,+tabs"
# One generation for each task: the other variants decode it again, some to the length limit.
QUICK_VARIANTS = "spm/all,spm/none"


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "quality",
        # --numerics is a list here.
        conflict_handler="resolve",
        help="count right answers on public tasks with tests",
        description="Fills gaps of HumanEval-Infilling and rewrites code of EditEval, by turns with other"
        " systems, and judges each answer: same text, edit similarity, still parses, tests pass. The tests"
        " run what the models wrote, on this machine, in a process with limits that is no security boundary;"
        " --no-tests leaves them out.",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"the files of tasks (${DATA_VARIABLE})")
    parser.add_argument(
        "--sets",
        metavar="LIST",
        default=",".join(SETS),
        help=f"of {', '.join(SETS)} (these), and {REPO}: gaps in real files, judged by text alone",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--repo", type=Path, metavar="PATH", help=f"files for {REPO} (Python's own library)")
    source.add_argument("--corpus", metavar="NAME[,NAME]", help=f"pinned public sources for {REPO}")
    parser.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help=f"tasks of each set, drawn by --seed ({COUNT})"
    )
    parser.add_argument(
        "--variants",
        metavar="LIST",
        help="Draftline's ways to fill a gap: a prompt order (psm, spm, line-in-middle,"
        " lines-in-middle, or with -unhealed), a slash, and the filters"
        f" (all, none, no-stops, oracle) ({VARIANTS}); for {REPO} also + and sources of context"
        f" ({REPO_VARIANTS})",
    )
    parser.add_argument(
        "--ablate",
        action="store_true",
        help="also answer with each filter and stop rule left out, all from one generation",
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="SPEC", help="another system; may be given again"
    )
    parser.add_argument("--no-tests", action="store_true", help="run no code that a model wrote")
    quick = ", ".join(f"{count} {name}" for name, count in QUICK_COUNTS.items())
    add_common(parser, f"at most {quick} tasks in {QUICK_VARIANTS}, under a minute")
    parser.add_argument(
        "--numerics",
        dest="numerics_list",
        metavar="LIST",
        help=f"of {', '.join(NUMERICS)}, compared by turns: all in memory at once (by the device)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    # Imported here: both halves and torch are needed only now.
    from bench.peers.base import PeerFailed
    from bench.quality.draftline_infill import ABLATED, ABLATIONS, CONTEXT_VARIANTS
    from bench.quality.draftline_infill import VARIANTS as KNOWN

    settings = settings_from(args)
    usual = REPO_VARIANTS if args.sets == REPO else QUICK_VARIANTS if args.quick else VARIANTS
    variants = listed("--variants", args.variants or usual, (*KNOWN, *CONTEXT_VARIANTS))
    if args.ablate:
        variants = list(dict.fromkeys([*variants, ABLATED, *ABLATIONS]))
    each = in_each(args.numerics_list, settings)
    tasks = _tasks(args, settings.seed)
    peers = _peers(args.peer, tasks, settings)
    for one in each:
        prepare_model(one)
    try:
        with ExitStack() as stack:
            return _run(args, tasks, variants, each, peers, stack)
    except PeerFailed as error:
        _tell(str(error))
        return 1


@dataclass(frozen=True)
class _Tasks:
    """What is asked: gaps by the name of their set, and edits."""

    gaps: dict[str, list[InfillTask]]
    edits: list[EditTask]

    def counts(self) -> dict[str, int]:
        counts = {name: len(tasks) for name, tasks in self.gaps.items()}
        return {**counts, EDIT: len(self.edits)} if self.edits else counts


def _tasks(args: argparse.Namespace, seed: int) -> _Tasks:
    from bench.quality.datasets import WHERE_FROM, load_edits, load_random_span, load_single_line, subset

    check_count("--count", args.count)
    sets = listed("--sets", args.sets, (*SETS, REPO))
    counts = {
        name: min(args.count, most) if args.quick else args.count for name, most in QUICK_COUNTS.items()
    }
    repo = {REPO: _repo_tasks(args, counts[REPO], seed)} if REPO in sets else {}
    if sets == [REPO]:
        return _Tasks(repo, [])
    directory = data_directory(args.data)
    if directory is None:
        raise WrongUsage(f"give the tasks' directory with --data DIR or in ${DATA_VARIABLE}. {WHERE_FROM}")
    loaders = {SINGLE_LINE: load_single_line, RANDOM_SPAN: load_random_span}
    gaps = {name: subset(loaders[name](directory), counts[name], seed) for name in sets if name in loaders}
    return _Tasks({**gaps, **repo}, subset(load_edits(directory), counts[EDIT], seed) if EDIT in sets else [])


def _repo_tasks(args: argparse.Namespace, count: int, seed: int) -> list[InfillTask]:
    """Gaps of real files, as many from each corpus."""
    from bench.corpora import fetch
    from bench.places import default_corpus
    from bench.quality.repo_gaps import load_repo

    if args.corpus is not None:
        with TerminalProgress() as progress:
            roots = [fetch(name, progress) for name in dict.fromkeys(args.corpus.split(","))]
    else:
        roots = [args.repo or default_corpus()]
        if not roots[0].is_dir():
            raise WrongUsage(f"--repo {roots[0]} is not a directory")
    tasks: list[InfillTask] = []
    for number, root in enumerate(roots):
        share = count // len(roots) + (number < count % len(roots))
        tasks += load_repo(root, share, seed) if share else []
    return tasks


def _run(
    args: argparse.Namespace,
    tasks: _Tasks,
    variants: Sequence[str],
    each: Sequence[Settings],
    peers: tuple[Sequence[Infiller], Sequence[Decoder]],
    stack: ExitStack,
) -> int:
    """Load, ask and report; ``each`` are the settings in all numerics."""
    from bench.peers.base import PeerFailed
    from bench.quality.answers import by_turns

    decoders = _loaded(each, stack)
    infillers, rewriters = peers
    everybody: list[Infiller | Decoder] = [*infillers, *rewriters]
    for peer in everybody:
        stack.callback(peer.stop)
        peer.start()
    gap_candidates = _gap_candidates(decoders, infillers, variants, each[0]) if tasks.gaps else []
    edit_candidates = _edit_candidates(decoders, rewriters, each[0], tasks.edits) if tasks.edits else []
    options = {
        "sets": tasks.counts(),
        "seed": each[0].seed,
        "variants": list(variants),
        "tests": not args.no_tests,
        "max_new_tokens": each[0].max_new_tokens,
        "temperature": each[0].temperature,
    }
    numerics = ", ".join(named(settings) for settings in each)
    systems = {"draftline": {**decoders[0].describe(), "numerics": numerics}}
    for peer in everybody:
        systems[peer.name] = {**systems.get(peer.name, {}), **peer.describe()}
    journal, path = begin(args, options, systems)
    ask = partial(by_turns, seconds=QUICK_SECONDS if args.quick else None)
    failure: Exception | None = None
    with journal, stoppable() as steps:
        try:
            for name, gaps in tasks.gaps.items():
                candidates = _suiting(name, gap_candidates)
                steps.begin(name, len(gaps) * len(candidates))
                for answer in ask(name, gaps, candidates, tests=not args.no_tests and name != REPO):
                    journal.add(answer)
                    steps.advance()
            if tasks.edits:
                steps.begin(EDIT, len(tasks.edits) * len(edit_candidates))
                for answer in ask(EDIT, tasks.edits, edit_candidates, tests=not args.no_tests):
                    journal.add(answer)
                    steps.advance()
        except (PeerFailed, DraftlineError) as error:
            failure = error
    conclude(journal, path)
    if failure is not None:
        _tell(f"{failure} What was measured before counts.")
        return 1
    return 0


def _loaded(each: Sequence[Settings], stack: ExitStack) -> list[DraftlineDecoder]:
    """All numerics at once: loaded one after the other they could not answer by turns."""
    import_torch()
    from bench.peers.draftline_engine import DraftlineDecoder

    decoders = []
    with Steps() as steps:
        steps.begin("models", len(each))
        for settings in each:
            decoder = DraftlineDecoder(settings.engine_config())
            stack.callback(decoder.stop)
            decoder.start()
            decoders.append(decoder)
            steps.advance()
    return decoders


def _peers(specs: Sequence[str], tasks: _Tasks, settings: Settings) -> tuple[list[Infiller], list[Decoder]]:
    """The other systems, as far as the sets need them; not started.

    Raises:
        WrongUsage: a spec is not understood, or its system cannot do what a set asks.
    """
    if not specs:
        return [], []
    from bench.peers.choose import decoder_for, infiller_for

    infillers = [infiller_for(spec, settings) for spec in specs] if tasks.gaps else []
    rewriters = [decoder_for(spec, settings) for spec in specs] if tasks.edits else []
    for names in ([peer.name for peer in infillers], [peer.name for peer in rewriters]):
        for name in names:
            if names.count(name) > 1:
                raise WrongUsage(f"--peer: {name} is given more than once")
    return infillers, rewriters


def _gap_candidates(
    decoders: Sequence[DraftlineDecoder],
    peers: Sequence[Infiller],
    variants: Sequence[str],
    settings: Settings,
) -> list[Candidate[InfillTask]]:
    from bench.quality.answers import infill_candidates
    from bench.quality.draftline_infill import ABLATIONS, CONTEXT_VARIANTS, VARIANTS, DraftlineInfill

    known = {**VARIANTS, **ABLATIONS, **CONTEXT_VARIANTS}
    options = settings.completion_options()
    infills = [DraftlineInfill(decoder.runtime, options) for decoder in decoders]
    ours = [infill.candidate(known[variant]) for infill in infills for variant in variants]
    return [*ours, *(candidate for peer in peers for candidate in infill_candidates(peer))]


def _suiting(set_name: str, candidates: Sequence[Candidate[InfillTask]]) -> list[Candidate[InfillTask]]:
    """Those that answer a set: a task of one file alone has no context to be given."""
    return [each for each in candidates if set_name == REPO or not each.variant.startswith("+")]


def _edit_candidates(
    decoders: Sequence[DraftlineDecoder],
    peers: Sequence[Decoder],
    settings: Settings,
    tasks: Sequence[EditTask],
) -> list[Candidate[EditTask]]:
    from bench.quality.edits import PARSED, edit_candidates, edit_room, peer_candidates

    runtime = decoders[0].runtime
    room = edit_room(runtime.tokenizer, list(tasks))
    if room > runtime.context:
        raise WrongUsage(
            f"the edits need {room} tokens, the context holds {runtime.context}: raise --context"
        )
    modes: tuple[Draft, ...] = (settings.draft, "none") if settings.draft != "none" else ("none",)
    if len(decoders) > 1:
        # Numerics are compared by what a user gets; slow ones would take hours for the rest.
        ours = [e for decoder in decoders for e in edit_candidates(decoder.runtime, modes[:1], (PARSED,))]
    else:
        ours = edit_candidates(runtime, modes)
    return [*ours, *(each for peer in peers for each in peer_candidates(peer, runtime.tokenizer))]


def _tell(message: str) -> None:
    print(f"draftline bench: {message}", file=sys.stderr)
