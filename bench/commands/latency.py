"""``draftline bench latency``: real code, retyped into a real server, key by key."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import itertools
import random
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

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
from bench.corpora import CORPORA, fetch
from bench.peers.base import Editor, PeerFailed
from bench.peers.lsp_editor import draftline_editor
from bench.places import default_corpus
from bench.replay.items import ReplayItem, sample_items
from bench.replay.replay import Replay
from bench.replay.screen import ACCEPT_POLICIES
from bench.replay.typist import PACES, Manner
from lsp_server.commands.progress import TerminalProgress
from lsp_server.commands.switches import given
from lsp_server.context.related import SOURCES
from lsp_server.settings import Settings

ITEMS = 24
QUICK_ITEMS = 6
QUICK_CHARS = 60
# Quick means under a minute: what is not done by then is left out.
QUICK_SECONDS = 35.0


def add_arguments(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this bench."""
    parser = benches.add_parser(
        "latency",
        help="retype real code into a server and time every key",
        description="Takes pieces out of real source files and types them again, with slips, newlines, moves"
        " and edits elsewhere, into a server process over LSP, and into other systems in the same run."
        " The document has a name that is nowhere on disk, so that the piece cannot be read.",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--repo", type=Path, metavar="PATH", help="your source files (Python's own library)")
    source.add_argument(
        "--corpus",
        metavar="NAME[,NAME]",
        help=f"pinned public sources, downloaded once: all, or some of {', '.join(CORPORA)}",
    )
    parser.add_argument("--items", type=int, default=ITEMS, metavar="N", help=f"pieces to type ({ITEMS})")
    parser.add_argument(
        "--max-chars", type=int, default=400, metavar="N", help="longest piece in characters (400)"
    )
    parser.add_argument(
        "--pace",
        choices=PACES,
        default="await",
        help="wait for each answer, pause like a person, or type as fast as possible (await)",
    )
    parser.add_argument(
        "--accept",
        choices=ACCEPT_POLICIES,
        default="whole",
        help="what is taken of right suggestions (whole)",
    )
    parser.add_argument(
        "--sources",
        metavar="LIST",
        help="type also into a second Draftline, whose prompts have these sources of context:"
        f" {', '.join(SOURCES)}",
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="SPEC", help="another system; may be given again"
    )
    add_common(parser, f"at most {QUICK_ITEMS} pieces of at most {QUICK_CHARS} characters, under a minute")


def run(args: argparse.Namespace) -> int:
    """Run the bench; returns the exit status."""
    settings = settings_from(args)
    if args.sources is not None:
        _sources(args.sources)
    check_count("--items", args.items)
    check_count("--max-chars", args.max_chars)
    items = _items(args, settings.seed)
    if not items:
        print("draftline bench: no pieces to type were found in these sources", file=sys.stderr)
        return 1
    prepare_model(settings)
    try:
        return asyncio.run(_run(args, settings, items))
    except PeerFailed as error:
        print(f"draftline bench: {error}", file=sys.stderr)
        return 1


def _items(args: argparse.Namespace, seed: int) -> list[ReplayItem]:
    """The pieces, by turns from all sources, numbered anew."""
    if args.corpus is not None:
        names = list(CORPORA) if args.corpus == "all" else list(dict.fromkeys(args.corpus.split(",")))
        with TerminalProgress() as progress:
            roots = [(name, fetch(name, progress)) for name in names]
    else:
        if args.repo is not None and not args.repo.is_dir():
            raise WrongUsage(f"--repo {args.repo} is not a directory")
        root = args.repo or default_corpus()
        roots = [(root.resolve().name, root)]
    count, longest = args.items, args.max_chars
    if args.quick:
        count, longest = min(count, QUICK_ITEMS), min(longest, QUICK_CHARS)
    share = -(-count // len(roots))
    sampled = [sample_items(root, share, seed, name, max_chars=longest) for name, root in roots]
    turns = [item for turn in itertools.zip_longest(*sampled) for item in turn if item is not None][:count]
    random.Random(seed).shuffle(turns)
    return [dataclasses.replace(item, index=index) for index, item in enumerate(turns)]


async def _run(args: argparse.Namespace, settings: Settings, items: Sequence[ReplayItem]) -> int:
    manner = Manner(args.pace, args.accept, settings.seed)
    async with _started(_editors(args, settings)) as editors:
        options = {
            "sources": args.corpus or ("--repo" if args.repo else "Python's library"),
            "items": len(items),
            "pace": manner.pace,
            "accept": manner.accept,
            "seed": manner.seed,
        }
        systems = {editor.name: editor.describe() for editor in editors}
        journal, path = begin(args, options, systems)
        replay = Replay(editors, manner, journal.add, QUICK_SECONDS if args.quick else None)
        with journal, stoppable() as steps:
            await _type(replay, items, steps)
        conclude(journal, path)
    for name, reason in replay.failures.items():
        print(f"draftline bench: {name} failed and was left out: {reason}", file=sys.stderr)
    return 1 if replay.failures else 0


def _editors(args: argparse.Namespace, settings: Settings) -> list[Editor]:
    from bench.peers.choose import editor_for

    editors: list[Editor] = [draftline_editor(models_of(settings), given(args))]
    if args.sources is not None:
        sources = _sources(args.sources)
        values = {**given(args), "contextSources": sources}
        editors.append(draftline_editor(models_of(settings), values, f"draftline +{'+'.join(sources)}"))
    editors += (editor_for(spec, settings) for spec in args.peer)
    names = [editor.name for editor in editors]
    if len(set(names)) < len(names):
        raise WrongUsage(f"two systems have one name: {', '.join(names)}")
    return editors


def _sources(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in SOURCES]:
        raise WrongUsage(f"--sources: {', '.join(unknown)} is none of {', '.join(SOURCES)}")
    return names


@contextlib.asynccontextmanager
async def _started(editors: list[Editor]) -> AsyncIterator[list[Editor]]:
    """Start one after the other; end all, whatever happens."""
    try:
        for editor in editors:
            print(f"starting {editor.name}", file=sys.stderr)
            await editor.start()
        yield editors
    finally:
        for editor in editors:
            await editor.stop()


async def _type(replay: Replay, items: Sequence[ReplayItem], steps: Steps) -> None:
    """Run the replay; Ctrl-C, which cancels this task, ends it as in code without a loop."""
    steps.begin("pieces", len(items))
    work = asyncio.ensure_future(replay.run(items, steps.advance))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        raise KeyboardInterrupt from None
