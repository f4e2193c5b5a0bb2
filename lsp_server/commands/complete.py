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
from lsp_server.commands.text_file import read_text_file, snapshot_of
from lsp_server.completion.pipeline import finish, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion, message_for
from lsp_server.context.gather import ContextGatherer
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Point, Snapshot
from lsp_server.engine_host import load_engine
from lsp_server.settings import Settings
from lsp_server.stdio import clean_stdout


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
        " characters and may be one past the end of the line. Exit status: 0 with a suggestion, 1 without"
        " one, and then stderr says why, 2 for wrong usage.",
    )
    parser.add_argument("place", metavar="PATH:LINE:COL")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all figures")
    add_switches(parser)


def run(args: argparse.Namespace) -> int:
    """Print the suggestion; returns the exit status."""
    try:
        settings = settings_from(args)
        place = parse_place(args.place)
        with clean_stdout() as out:
            answer = _ask(settings, place, digest_logits=args.json)
            if answer.reason:
                said = f"draftline complete: no suggestion ({answer.reason}). {answer.message}"
                print(said.rstrip(), file=sys.stderr)
            if args.json:
                print(json.dumps(_figures(answer), ensure_ascii=False), file=out)
            elif answer.text:
                print(answer.text, file=out)
    except WrongUsage as error:
        print(f"draftline complete: {error}", file=sys.stderr)
        return 2
    return 1 if answer.reason else 0


@dataclass
class _Answer:
    """A suggestion, or why there is none; ``result`` is None where the model was not asked."""

    text: str = ""
    reason: str = ""
    message: str = ""
    result: GenerationResult | None = None
    load_ms: float = 0.0


def _ask(settings: Settings, place: Place, digest_logits: bool) -> _Answer:
    answer = _Answer()
    options = replace(settings.completion_options(), digest_logits=digest_logits)
    try:
        snapshot = snapshot_of(place.path, read_text_file(place.path).text)
        cursor = locate(snapshot, place)
        engine, answer.load_ms = start_engine(settings.engine_config())
        try:
            # Of this file alone: nothing is open beside it.
            found = ContextGatherer(DocumentStore()).gather(snapshot, cursor, options)
            builder = PromptBuilder(engine.tokenizer, engine.context)
            prepared = prepare(snapshot, cursor, builder, options, None, found.files, found.prefix_lines)
            answer.result = engine.submit(prepared.request).future.result()
            answer.text = finish(prepared, answer.result).text
        finally:
            engine.close()
    except NoSuggestion as none:
        answer.reason = str(getattr(none.reason, "value", none.reason))
        answer.message = none.message or message_for(answer.reason)
    except DraftlineError as error:
        answer.reason, answer.message = error.code, str(error)
    return answer


def parse_place(text: str) -> Place:
    """Split PATH:LINE:COL.

    Raises:
        WrongUsage
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
        raise WrongUsage(f"expected PATH:LINE:COL with two numbers from 1, not {text!r}")
    return Place(Path(parts[0]), int(parts[1]), int(parts[2]))


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


def _figures(answer: _Answer) -> dict[str, Any]:
    said, result = {"text": answer.text, "reason": answer.reason}, answer.result
    if result is None:
        return said
    timings = result.timings
    return {
        **said,
        "finish_reason": result.finish_reason.value,
        "token_ids": list(result.token_ids),
        "logits_sha256": result.logits_sha256,
        "drafted": result.drafted,
        "accepted": result.accepted,
        "forwards": result.forwards,
        "prompt_tokens": result.prompt_tokens,
        "cached_tokens": result.cached_tokens,
        "ms": {
            "load": round(answer.load_ms, 3),
            "prompt": round(timings.prompt, 3),
            "first": round(timings.first, 3),
            "total": round(timings.total, 3),
        },
    }
