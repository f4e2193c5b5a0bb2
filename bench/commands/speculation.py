"""``draftline bench speculation``: what drafting brings and costs, and how far from the machine's limits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.choices import DATA_VARIABLE, data_directory, listed
from bench.commands.common import (
    WrongUsage,
    add_common,
    begin,
    check_count,
    conclude,
    in_each,
    prepare_model,
    settings_from,
    stoppable,
)
from bench.peers.base import PAUSE_S, Decoder, PeerFailed
from bench.peers.choose import ACCEPTED, decoder_for
from bench.records import Call, Record
from bench.speculation.extent import FULL, QUICK, SETS, TREE_WIDTH, Extent
from inference.api import NUMERICS
from inference.errors import DraftlineError
from inference.openmp import import_torch
from lsp_server.settings import Settings

if TYPE_CHECKING:
    from bench.peers.draftline_engine import DraftlineDecoder
    from bench.speculation.collect import Sources
    from bench.speculation.prompts import SetPrompt


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "speculation",
        # --numerics is a list here.
        conflict_handler="resolve",
        help="compare decoding with and without drafts, and with other systems",
        description="Decodes the same prompts without drafts, with drafts always and with planned drafts, by"
        " turns with other systems, and measures what the machine could do at best. Sets of prompts: fim"
        " (HumanEval-Infilling), real (places in real files), edit (EditEval), fresh (nothing to copy from)."
        " Exit status 1 if drafts changed the tokens although this machine promises equal bits.",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help=f"the files of tasks for fim and edit (${DATA_VARIABLE})"
    )
    parser.add_argument("--sets", metavar="LIST", default=",".join(SETS), help=f"of {', '.join(SETS)} (all)")
    parser.add_argument(
        "--repo", type=Path, metavar="PATH", help="source files for the set real (Python's own library)"
    )
    parser.add_argument(
        "--count", type=int, default=FULL.count, metavar="N", help=f"prompts of each set ({FULL.count})"
    )
    parser.add_argument(
        "--repeats", type=int, default=FULL.repeats, metavar="N", help=f"of every prompt ({FULL.repeats})"
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="SPEC",
        help=f"another system, may be given again: {ACCEPTED}",
    )
    switch = argparse.BooleanOptionalAction
    parser.add_argument(
        "--sweep", action=switch, default=True, help="limit the length of drafts to 1, 2, ..."
    )
    parser.add_argument("--roofline", action=switch, default=True, help="measure the machine's limits")
    add_common(parser, "one prompt of each set, under a minute")
    parser.add_argument(
        "--numerics",
        dest="numerics_list",
        metavar="LIST",
        help=f"of {', '.join(NUMERICS)}: the first is measured in full, the others with some prompts,"
        " one after the other (by the device)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    settings = settings_from(args)
    extent = _extent(args, settings)
    sources = _sources(args, settings)
    each = in_each(args.numerics_list, settings)
    if args.roofline and settings.device != "cpu":
        raise WrongUsage(f"the roofline is measured on the CPU only: add --no-roofline for {settings.device}")
    peers = _peers(args.peer, settings)
    for one in each:
        prepare_model(one)
    try:
        with ExitStack() as stack:
            return _run(args, extent, sources, each, peers, stack)
    except PeerFailed as error:
        _tell(str(error))
        return 1


def _run(
    args: argparse.Namespace,
    extent: Extent,
    sources: Sources,
    each: Sequence[Settings],
    peers: Sequence[Decoder],
    stack: ExitStack,
) -> int:
    """Load, measure and report; ``each`` are the settings with the numerics to measure, the first in full."""
    # Imported here: both halves and torch are needed only now.
    import_torch()
    from bench.peers.draftline_engine import DraftlineDecoder
    from bench.speculation.session import Session, measure

    draftline, *others = [DraftlineDecoder(settings.engine_config()) for settings in each]
    for system in (draftline, *others, *peers):
        stack.callback(system.stop)
    draftline.start()
    prompts = _prompts(draftline, each[0], extent, sources)
    if not prompts:
        _tell("nothing is left to decode")
        return 1
    for peer in peers:
        peer.start()
    options = {
        **asdict(extent),
        "sets": {name: sum(prompt.set == name for prompt in prompts) for name in sources.sets},
        "seed": sources.seed,
        "numerics": [decoder.numerics for decoder in (draftline, *others)],
        "sweep": args.sweep,
        "roofline": args.roofline,
        "tree_width": TREE_WIDTH,
        "pause_s": PAUSE_S,
    }
    systems = {decoder.name: decoder.describe() for decoder in (draftline, *peers)}
    journal, path = begin(args, options, systems)
    failure: Exception | None = None
    with journal, stoppable() as steps:
        session = Session(extent, prompts, journal, steps)
        try:
            measure(session, draftline, peers, others, args.sweep, args.roofline)
        except (PeerFailed, DraftlineError) as error:
            failure = error
    conclude(journal, path)
    changed = _changed(journal.records, (draftline, *others))
    if failure is not None:
        _tell(f"{failure} What was measured before counts.")
    return 1 if changed or failure is not None else 0


def _prompts(
    draftline: DraftlineDecoder, settings: Settings, extent: Extent, sources: Sources
) -> list[SetPrompt]:
    """For the vocabulary of the loaded model."""
    from bench.speculation.collect import collect
    from bench.speculation.prompts import PromptMaker

    runtime = draftline.runtime
    completion = replace(settings.completion_options(), prompt_tokens=extent.prompt_tokens)
    maker = PromptMaker(runtime.tokenizer, runtime.context, completion, extent.max_tokens)
    return collect(maker, sources, extent, _tell)


def _changed(records: Sequence[Record], decoders: Sequence[DraftlineDecoder]) -> bool:
    """Whether drafts changed tokens although equal bits are promised; says where they differ at all."""
    from bench.speculation.decode import differing

    calls = [record for record in records if isinstance(record, Call)]
    different = differing(calls, decoders[0].name)
    for call in different:
        where = f"{call.set} {call.item}, mode {call.mode}, {call.numerics}, repeat {call.repeat}"
        print(f"other tokens than before: {where}")
    promised = {decoder.numerics for decoder in decoders if decoder.bit_exact}
    return any(call.numerics in promised for call in different)


def _peers(specs: Sequence[str], settings: Settings) -> list[Decoder]:
    """The other systems, not started.

    Raises:
        WrongUsage: a spec is not understood, or two systems have the same name.
    """
    peers: dict[str, Decoder] = {}
    for spec in specs:
        peer = decoder_for(spec, settings)
        if peer.name in peers:
            raise WrongUsage(
                f"--peer {spec}: {peer.name} was given before, and tables could not tell them apart"
            )
        peers[peer.name] = peer
    return list(peers.values())


def _extent(args: argparse.Namespace, settings: Settings) -> Extent:
    check_count("--count", args.count)
    check_count("--repeats", args.repeats)
    if args.quick:
        return replace(QUICK, prompt_tokens=min(QUICK.prompt_tokens, settings.prompt_tokens))
    return replace(FULL, count=args.count, repeats=args.repeats, prompt_tokens=settings.prompt_tokens)


def _sources(args: argparse.Namespace, settings: Settings) -> Sources:
    from bench.places import default_corpus
    from bench.speculation.collect import Sources

    sets = listed("--sets", args.sets, SETS)
    data = data_directory(args.data)
    repo = args.repo or default_corpus()
    if not repo.is_dir():
        raise WrongUsage(f"--repo {repo} is not a directory")
    return Sources(sets, data, repo, settings.seed)


def _tell(message: str) -> None:
    print(f"draftline bench: {message}", file=sys.stderr)
