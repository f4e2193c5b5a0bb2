"""``draftline complete``: one suggestion for a place in a file."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inference.api import EngineConfig, EngineState, EngineStatus, GenerationResult, TextEngine
from inference.errors import DraftlineError, EngineStopped
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from
from lsp_server.completion.pipeline import finish, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion, message_for
from lsp_server.context.exclusions import Exclusions, workspace_root
from lsp_server.context.gather import ContextGatherer
from lsp_server.context.secrets import has_private_key
from lsp_server.documents.languages import language_of
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Point, Snapshot
from lsp_server.engine_host import load_engine
from lsp_server.stdio import clean_stdout


class CannotComplete(DraftlineError):
    """The file cannot be read or must not be."""

    code = "cannot-complete"


@dataclass(frozen=True)
class Place:
    """PATH:LINE:COL as given: both numbers count from 1."""

    path: Path
    line: int
    column: int


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser(
        "complete",
        help="suggest code for a place in a file",
        description="Prints the suggestion for a place in a file. LINE and COL count from 1; COL counts"
        " characters and may be one past the end of the line.",
    )
    parser.add_argument("place", metavar="PATH:LINE:COL")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all figures")
    add_switches(parser)


def run(args: argparse.Namespace) -> int:
    """Print the suggestion; returns the exit status."""
    try:
        settings = settings_from(args)
        place = parse_place(args.place)
        snapshot = read_file(place.path)
        cursor = locate(snapshot, place)
    except WrongUsage as error:
        print(f"draftline complete: {error}", file=sys.stderr)
        return 2
    options = replace(settings.completion_options(), digest_logits=args.json)
    with clean_stdout() as out:
        engine, load_ms = start_engine(settings.engine_config())
        try:
            # Of this file alone: nothing is open beside it.
            found = ContextGatherer(DocumentStore()).gather(snapshot, cursor, options)
            builder = PromptBuilder(engine.tokenizer, engine.context)
            prepared = prepare(snapshot, cursor, builder, options, None, found.files, found.prefix_lines)
            result = engine.submit(prepared.request).future.result()
            try:
                text = finish(prepared, result).text
            except NoSuggestion as none:
                text = ""
                _say_why(none)
        except NoSuggestion as none:
            _say_why(none)
            return 1
        finally:
            engine.close()
        if args.json:
            print(json.dumps(_figures(text, result, load_ms), ensure_ascii=False), file=out)
        elif text:
            print(text, file=out)
    return 0


def parse_place(text: str) -> Place:
    """Split PATH:LINE:COL.

    Raises:
        WrongUsage
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
        raise WrongUsage(f"expected PATH:LINE:COL with two numbers from 1, not {text!r}")
    return Place(Path(parts[0]), int(parts[1]), int(parts[2]))


def read_file(path: Path) -> Snapshot:
    """A file as the model may see it: secrets are replaced.

    Raises:
        CannotComplete: as `read_text`.
    """
    return snapshot_of(path, read_text(path))


def snapshot_of(path: Path, text: str) -> Snapshot:
    """The snapshot of a file's text."""
    return Snapshot.of(text, uri=path.resolve().as_uri(), language_id=language_of(path))


def read_text(path: Path) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        CannotComplete: missing, unreadable, excluded, binary or not UTF-8.
    """
    exclusions = Exclusions()
    exclusions.set_roots([workspace_root(path)])
    if exclusions.excludes(path):
        raise CannotComplete(
            f"{path} is excluded: it may hold secrets, or a .draftlineignore names it.",
            "Excluded files are never read.",
        )
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # Reading a pipe or a device could wait for ever.
            raise CannotComplete(f"{path} is not a regular file.", "Name a file.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise CannotComplete(f"{path} does not exist.", "Check the path.") from None
    except IsADirectoryError:
        raise CannotComplete(f"{path} is a directory.", "Name a file in it.") from None
    except OSError as error:
        raise CannotComplete(f"{path} cannot be read: {error.strerror}.") from None
    if b"\0" in data:
        raise CannotComplete(f"{path} is a binary file.", "Name a text file in UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CannotComplete(
            f"{path} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}.",
            "Convert the file to UTF-8 first.",
        ) from None
    if has_private_key(text.splitlines()):
        raise CannotComplete(f"{path} is excluded: it holds a private key.", "Excluded files are never read.")
    return text


def locate(snapshot: Snapshot, place: Place) -> Point:
    """The 0-based place in the text.

    Raises:
        WrongUsage: out of range; the message names the range.
    """
    lines = len(snapshot.lines)
    if not 1 <= place.line <= lines:
        raise WrongUsage(f"LINE must be from 1 to {lines}, not {place.line}")
    columns = len(snapshot.line(place.line - 1)) + 1
    if not 1 <= place.column <= columns:
        raise WrongUsage(f"COL must be from 1 to {columns} on line {place.line}, not {place.column}")
    return Point(place.line - 1, place.column - 1)


def start_engine(config: EngineConfig) -> tuple[TextEngine, float]:
    """A ready engine and the milliseconds its start took."""
    ended = threading.Event()
    last: list[EngineStatus] = []

    def on_status(status: EngineStatus) -> None:
        last.append(status)
        if status.state in (EngineState.READY, EngineState.FAILED, EngineState.STOPPED):
            ended.set()

    began = time.perf_counter()
    engine = load_engine(config, on_status)
    engine.start()
    ended.wait()
    status = last[-1]
    if status.state is not EngineState.READY:
        engine.close()
        failure = EngineStopped(status.message or "The engine did not start.", status.next_step)
        failure.code = status.code or failure.code
        raise failure
    return engine, 1000 * (time.perf_counter() - began)


def _say_why(none: NoSuggestion) -> None:
    reason = getattr(none.reason, "value", none.reason)
    words = none.message or message_for(reason)
    print(f"draftline complete: no suggestion ({reason}). {words}".rstrip(), file=sys.stderr)


def _figures(text: str, result: GenerationResult, load_ms: float) -> dict[str, Any]:
    timings = result.timings
    return {
        "text": text,
        "finish_reason": result.finish_reason.value,
        "token_ids": list(result.token_ids),
        "logits_sha256": result.logits_sha256,
        "drafted": result.drafted,
        "accepted": result.accepted,
        "forwards": result.forwards,
        "prompt_tokens": result.prompt_tokens,
        "cached_tokens": result.cached_tokens,
        "ms": {
            "load": round(load_ms, 3),
            "prompt": round(timings.prompt, 3),
            "first": round(timings.first, 3),
            "total": round(timings.total, 3),
        },
    }
