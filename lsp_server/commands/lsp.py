"""``draftline lsp``: the language server over stdio or TCP."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from pathlib import Path

from lsp_server.commands.switches import WrongUsage, add_switches, settings_from

LEVELS = ("debug", "info", "warning", "error")


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser("lsp", help="run the language server")
    parser.add_argument("--stdio", action="store_true", help="talk over stdin and stdout (the default)")
    parser.add_argument("--tcp", metavar="HOST:PORT", help="wait for one client there instead")
    parser.add_argument("--log-file", type=Path, metavar="PATH", help="write the log there, not to stderr")
    parser.add_argument("--log-level", choices=LEVELS, default="warning", help="(%(default)s)")
    add_switches(parser)


def run(args: argparse.Namespace) -> int:
    """Serve one client; returns 0 after ``shutdown`` and ``exit``, 1 if the client just went."""
    try:
        if args.stdio and args.tcp is not None:
            raise WrongUsage("--stdio and --tcp exclude each other; leave one of them out")
        settings = settings_from(args)
        address = None if args.tcp is None else _address(args.tcp)
    except WrongUsage as error:
        print(f"draftline lsp: {error}", file=sys.stderr)
        return 2
    # Before anything else is imported that might print.
    from lsp_server.stdio import claim_stdio

    connection = None if address else claim_stdio()
    try:
        _start_log(args.log_file, args.log_level)
    except OSError as error:
        print(f"draftline lsp: cannot write the log {args.log_file}: {error.strerror}", file=sys.stderr)
        return 1

    # The LSP types are thousands of classes: a tenth of their import is garbage collection, and they
    # are never garbage.
    gc.disable()
    from lsp_server.server import create_server
    from lsp_server.transport import accept_tcp, serve

    gc.enable()
    gc.freeze()

    if connection is None:
        assert address is not None
        try:
            connection = accept_tcp(*address)
        except OSError as error:
            print(f"draftline lsp: cannot listen on {args.tcp}: {error.strerror}", file=sys.stderr)
            return 1
    server = create_server(settings)
    status = serve(server.protocol, connection)
    server.host.close()
    logging.shutdown()
    sys.stderr.flush()
    # The interpreter's own end would wait for a model that is loading or decoding in native code.
    os._exit(status)


def _start_log(file: Path | None, level: str) -> None:
    handler = (
        logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # pygls logs whole messages, that is, everything the user types; what goes wrong is logged here too.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    logging.captureWarnings(True)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise WrongUsage(f"--tcp takes HOST:PORT with a port from 0 to 65535, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)
