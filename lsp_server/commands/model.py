"""``draftline model``: list, fetch, find, check and remove weights."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from inference.api import DEFAULT_MODEL, NUMERICS
from inference.errors import DraftlineError
from inference.weights import catalog, store, verify
from inference.weights.convert import damaged_files, label_of
from inference.weights.disk import megabytes
from lsp_server.commands.progress import TerminalProgress

_TABLE_COLUMNS = 160


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``model`` and its actions; ``args.run`` is then ``run``."""
    parser = subparsers.add_parser("model", help="list, fetch, find, check and remove model weights")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="the models known by name, and which are on this machine")
    listing.add_argument("--json", action="store_true", help="print one JSON array")

    fetching = actions.add_parser("fetch", help="download, verify and convert a model")
    _add_name(fetching)
    fetching.add_argument(
        "--numerics",
        choices=NUMERICS,
        default="int8",
        help="also convert to this form, so that the first start is quick (default: %(default)s)",
    )

    finding = actions.add_parser("path", help="print where a model's converted files are")
    _add_name(finding)
    finding.add_argument("--original", action="store_true", help="print the downloaded file instead")
    finding.add_argument("--numerics", choices=NUMERICS, help="of the converted files (default: any)")

    removing = actions.add_parser("remove", help="delete a model's files")
    _add_name(removing, default=False)

    verifying = actions.add_parser("verify", help="recompute all checksums of a model")
    _add_name(verifying)
    parser.set_defaults(run=run)


def _add_name(parser: argparse.ArgumentParser, default: bool = True) -> None:
    if default:
        parser.add_argument("name", nargs="?", default=DEFAULT_MODEL, help="default: %(default)s")
    else:
        parser.add_argument("name")


def run(args: argparse.Namespace) -> int:
    """Run one action; 0 done, 1 failed with a message on stderr, 130 interrupted."""
    actions = {"list": _list, "fetch": _fetch, "path": _path, "remove": _remove, "verify": _verify}
    try:
        return actions[args.action](args)
    except DraftlineError as error:
        print(f"draftline model {args.action}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"draftline model {args.action}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"draftline model {args.action}: interrupted; finished parts are kept", file=sys.stderr)
        return 130
    return 1


def _list(args: argparse.Namespace) -> int:
    models = store.list_models()
    if args.json:
        print(json.dumps([_as_json(status) for status in models], indent=2))
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "download", "memory", "licence", "on this machine"):
        table.add_column(heading, no_wrap=True)
    for status in models:
        entry = status.entry
        table.add_row(
            f"{entry.name}{' *' if entry.name == DEFAULT_MODEL else ''}",
            megabytes(entry.bytes),
            f"{entry.memory_mb / 1024:.1f} GiB",
            entry.licence,
            _state(status),
        )
    console = Console()
    # rich cuts what is wider than the terminal, or than 80 columns in a pipe; a name is of use as a whole.
    Console(width=max(console.width, _TABLE_COLUMNS)).print(table)
    console.print()
    for status in models:
        console.print(f"{status.entry.name}: {status.entry.description}", highlight=False)
    console.print("\n* the default. A path to a .gguf file or a model directory works as well as a name")
    return 0


def _state(status: store.ModelStatus) -> str:
    numerics = sorted({label_of(path) for path in status.converted})
    if numerics:
        return f"ready ({', '.join(numerics)})"
    return "fetched" if status.original is not None else "-"


def _as_json(status: store.ModelStatus) -> dict[str, Any]:
    entry = status.entry
    return {
        "name": entry.name,
        "default": entry.name == DEFAULT_MODEL,
        "family": entry.family,
        "licence": entry.licence,
        "description": entry.description,
        "bytes": entry.bytes,
        "memory_mb": entry.memory_mb,
        "original": None if status.original is None else str(status.original),
        "converted": [str(path) for path in status.converted],
    }


def _fetch(args: argparse.Namespace) -> int:
    with TerminalProgress() as progress:
        prepared = store.prepare(args.name, args.numerics, allow_download=True, progress=progress)
    done = "fetched" if prepared.fetched else "converted" if prepared.converted else "already here"
    print(f"{args.name}: {done}, {prepared.path}")
    return 0


def _path(args: argparse.Namespace) -> int:
    if args.original:
        found = store.locate(args.name)
        paths = [] if found is None else [found]
    else:
        paths = [
            path
            for path in store.conversions(catalog.lookup(args.name).name)
            if args.numerics is None or label_of(path) == args.numerics
        ]
    if not paths:
        print(
            f"draftline model path: {args.name} is not on this machine. "
            f"Run `draftline model fetch {args.name}` first.",
            file=sys.stderr,
        )
        return 1
    for path in paths:
        print(path)
    return 0


def _remove(args: argparse.Namespace) -> int:
    removed = store.remove(args.name)
    for path in removed:
        print(f"removed {path}")
    kept = store.locate(args.name)
    if kept is not None:
        print(f"kept {kept} (the hub's cache is shared with other programs)")
    elif not removed:
        print(f"{args.name} was not on this machine")
    return 0


def _verify(args: argparse.Namespace) -> int:
    entry = catalog.lookup(args.name)
    original = store.locate(entry.name)
    conversions = store.conversions(entry.name)
    if original is None and not conversions:
        print(
            f"draftline model verify: {entry.name} is not on this machine. "
            f"Run `draftline model fetch {entry.name}` first.",
            file=sys.stderr,
        )
        return 1
    failed = False
    with TerminalProgress() as progress:
        if original is not None and original.is_file() and entry.sha256 is not None:
            failed |= not _report(original, verify.sha256_of(original, progress) == entry.sha256)
        elif original is not None:
            failed |= not _report(original, not _changed_files(original, progress))
        for directory in conversions:
            failed |= not _report(directory, not damaged_files(directory, progress))
    if failed:
        print(
            f"draftline model verify: {entry.name} is damaged. Run `draftline model remove {entry.name}` "
            f"and `draftline model fetch {entry.name}`.",
            file=sys.stderr,
        )
    return 1 if failed else 0


def _changed_files(directory: Path, progress: TerminalProgress) -> list[Path]:
    """Files of a hub directory that differ from what was verified when they were downloaded."""
    return [
        file
        for file in sorted(directory.glob("*.safetensors"))
        if verify.remembered(file) != verify.sha256_of(file, progress)
    ]


def _report(path: Path, sound: bool) -> bool:
    print(f"{'ok     ' if sound else 'DAMAGED'} {path}")
    return sound
