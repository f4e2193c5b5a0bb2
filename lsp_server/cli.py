"""The ``draftline`` command.

One module of lsp_server/commands/ for each subcommand, with two functions: ``add_arguments`` adds its
parser, ``run`` does the work and returns the exit status: 0 done, 1 failed with a message on stderr,
2 wrong usage. From here come 130 for Ctrl-C, and 1 without a message where the reader of the output has gone.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from inference.errors import DraftlineError
from lsp_server import __version__
from lsp_server.stdio import flushed, open_missing_streams

COMMANDS = ("lsp", "complete", "edit", "model", "doctor", "demo", "bench")


def command() -> NoReturn:
    """The process of the command: `main`, and an end that neither loses output nor waits."""
    status = main()
    if not flushed():
        status = status or 1
    # The interpreter's own end would abort while this thread is in native code, as after Ctrl-C.
    if any(thread.name == "draftline-model" for thread in threading.enumerate()):
        os._exit(status)
    sys.exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    open_missing_streams()
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except DraftlineError as error:
        print(f"draftline: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1  # as with ``| head``: whoever read the output has seen enough
    except OSError as error:
        where = "" if error.filename is None else f" ({error.filename})"
        print(f"draftline: {error.strerror or error}{where}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("draftline: interrupted", file=sys.stderr)
        return 130


def _run(arguments: list[str]) -> int:
    # An editor waits for the server: only the module of the command that is run gets imported.
    wanted = arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS
    parser = argparse.ArgumentParser(
        prog="draftline", description="Private code completion that runs on this machine."
    )
    parser.add_argument("--version", action="version", version=f"draftline {__version__}")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=_SwitchesAnywhere
    )
    modules: dict[str, ModuleType] = {}
    for name in wanted:
        module = _load(name)
        if module is not None:
            modules[name] = module
            module.add_arguments(subparsers)
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as exit:
        # argparse ends the process itself; its statuses are ours already (0 for help, 2 for usage).
        return exit.code if isinstance(exit.code, int) else 2
    return int(modules[parsed.command].run(parsed))


class _SwitchesAnywhere(argparse.ArgumentParser):
    """Takes switches also in front of a positional argument that may be left out: ``edit PATH --diff TEXT``.

    argparse alone, before Python 3.13, takes that argument for left out as soon as a switch comes.
    """

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As of the base class."""
        optional = any(action.nargs == "?" for action in self._get_positional_actions())
        if self._mixing or not optional:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False


def _load(name: str) -> ModuleType | None:
    module = f"lsp_server.commands.{name}"
    if importlib.util.find_spec(module) is None:
        return None
    return importlib.import_module(module)
