"""``draftline bench``: measurements that anyone can repeat. Each bench is a module of ``bench.commands``."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys

from inference.errors import DraftlineError
from lsp_server.commands.switches import WrongUsage

# In the order in which help lists them.
BENCHES = ("latency", "speculation", "quality", "exactness", "numerics", "soak", "report")


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser("bench", help="measure this machine")
    benches = parser.add_subparsers(dest="bench", metavar="BENCH", required=True)
    for name in BENCHES:
        importlib.import_module(f"bench.commands.{name}").add_arguments(benches)


def run(args: argparse.Namespace) -> int:
    """Run one bench; returns the exit status."""
    module = importlib.import_module(f"bench.commands.{args.bench}")
    # Ended from outside, a bench stops as by Ctrl-C: it keeps its results and ends the processes it started.
    signals = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, signal.default_int_handler) for number in signals}
    try:
        status: int = module.run(args)
    except WrongUsage as error:
        print(f"draftline bench: {error}", file=sys.stderr)
        return 2
    except DraftlineError as error:
        print(f"draftline bench: {error}", file=sys.stderr)
        return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status
