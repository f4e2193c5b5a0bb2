"""``draftline edit``: lines of a file rewritten by an instruction."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from inference.api import GenerationResult, TextEngine
from inference.errors import DraftlineError
from lsp_server.commands.complete import start_engine
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from
from lsp_server.commands.text_file import TextFile, read_text_file, replace_text_file, snapshot_of
from lsp_server.context.secrets import has_private_key
from lsp_server.documents.line_index import split_lines
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.edits import LineEdit, line_edits
from lsp_server.inline_edit.reasons import FLAG_MESSAGES, NoEdit, NoEditError
from lsp_server.inline_edit.rewrite import Rewritten
from lsp_server.inline_edit.selection import Selection
from lsp_server.inline_edit.service import TRUNCATED, EditOptions, prepare_edit
from lsp_server.stdio import clean_stdout

STDIN = "-"
_NO_INSTRUCTION = "no instruction: give it as an argument or on stdin"
_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
# At \n only, as diffs have it.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Target:
    """PATH[:START[-END]]: lines count from 1, both ends included; without them the whole file."""

    path: str
    start: int | None
    end: int | None


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser(
        "edit",
        help="rewrite lines of a file by an instruction",
        description="Asks the model to change lines START to END (from 1, both included; without them all"
        " lines) and prints the file as it would be. The file changes only with --write. A doubtful answer"
        " (one that deletes most, no longer parses, repeats itself or what stands around, lacks an import or"
        " ran into the length limit) is refused unless --force is given. Exit status: 0 with an edit, 1 with"
        " none, and then stderr says why and no file has changed, 2 for wrong usage.",
    )
    parser.add_argument("target", metavar="PATH[:START[-END]]", help="- reads the text from stdin")
    parser.add_argument("--lines", metavar="START[-END]", help="another way to name the lines, for stdin too")
    parser.add_argument(
        "instruction", metavar="INSTRUCTION", nargs="?", help="what to change (without it, or -: from stdin)"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--diff", action="store_true", help="print a unified diff")
    output.add_argument("--write", action="store_true", help="change the file")
    output.add_argument("--json", action="store_true", help="print one JSON object with all figures")
    parser.add_argument("--force", action="store_true", help="take a doubtful answer too")
    add_switches(parser)


def run(args: argparse.Namespace) -> int:
    """Make the edit; returns the exit status."""
    try:
        return _run(args)
    except WrongUsage as error:
        print(f"draftline edit: {error}", file=sys.stderr)
        return 2
    except NoEditError as none:
        reason, message = none.reason, none.message
    except DraftlineError as error:
        reason, message = error.code, str(error)
    print(f"draftline edit: no edit ({reason}). {message}".rstrip(), file=sys.stderr)
    return 1


def _run(args: argparse.Namespace) -> int:
    settings = settings_from(args)
    target = parse_target(args.target, args.lines)
    _check(args, target)
    file = _read(target)
    selection = select(_snapshot(target, file.text), target)
    instruction = _instruction(args)
    options = EditOptions(settings.temperature, settings.seed, not settings.no_cache)
    with clean_stdout() as out:
        engine, load_ms = start_engine(settings.engine_config())
        try:
            rewritten, result = _ask(engine, selection, instruction, options)
        finally:
            engine.close()
        doubts = [FLAG_MESSAGES[flag] for flag in rewritten.flags]
        edited = TextFile(file.mark, applied(file.text, line_edits(selection, rewritten.hunks)))
        if args.json:
            figures = _figures(edited, rewritten, result, load_ms)
            print(json.dumps(figures, ensure_ascii=False), file=out)
        if doubts and not args.force:
            print(
                f"draftline edit: not applied: {'; '.join(doubts)}. Look at it with --force --diff.",
                file=sys.stderr,
            )
            return 1
        if not args.json:
            _show(args, out, target, file, edited, rewritten)
    return 0


def parse_target(text: str, lines: str | None = None) -> Target:
    """Split PATH[:START[-END]]; ``lines`` names START[-END] in another way.

    Raises:
        WrongUsage
    """
    path, colon, named = text.rpartition(":")
    if not colon or _LINES.fullmatch(named) is None:
        path, named = text, ""
    if not path:
        raise WrongUsage(f"expected PATH or PATH:START-END with two line numbers from 1, not {text!r}")
    if lines is not None:
        if named and os.path.lexists(text):
            path, named = text, ""  # a file of that name
        if named:
            raise WrongUsage(f"{text} and --lines {lines} both name lines; leave one of them out")
        named = lines
    elif re.search(r":[\d,-]*$", path) and not os.path.lexists(path):
        raise WrongUsage(f"expected PATH:START-END with two line numbers from 1, not {text!r}")
    if not named and lines is None:
        return Target(path, None, None)
    found = _LINES.fullmatch(named)
    if found is None:
        raise WrongUsage(f"expected --lines START-END with two line numbers from 1, not {named!r}")
    start = int(found[1])
    end = int(found[2]) if found[2] else start
    if not 1 <= start <= end:
        raise WrongUsage(f"START must be 1 or more and END not before it, not {start}-{end}")
    return Target(path, start, end)


def select(snapshot: Snapshot, target: Target) -> Selection:
    """The lines of a target.

    Raises:
        WrongUsage: out of range; the message names the range.
        NoEditError: ``empty-selection``.
    """
    lines = len(snapshot.lines) - (len(snapshot.lines) > 1 and snapshot.lines[-1] == "")
    start, end = target.start or 1, target.end or lines
    if end > lines:
        raise WrongUsage(f"lines must be from 1 to {lines}, not {start}-{end}")
    return Selection.of(snapshot, Point(start - 1, 0), Point(end - 1, len(snapshot.line(end - 1))))


def applied(text: str, edits: Sequence[LineEdit]) -> str:
    """``text`` after edits, which are in order and do not overlap.

    Not made of a snapshot, in which secrets are replaced by as many other characters.
    """
    lines = split_lines(text)
    pieces: list[str] = []
    at = Point(0, 0)
    for edit in edits:
        pieces += [_between(lines, at, edit.start), edit.text]
        at = edit.end
    return "".join([*pieces, _between(lines, at, Point(len(lines) - 1, len(lines[-1])))])


def _between(lines: Sequence[str], start: Point, end: Point) -> str:
    if start.line == end.line:
        return lines[start.line][start.column : end.column]
    middle = "".join(lines[start.line + 1 : end.line])
    return lines[start.line][start.column :] + middle + lines[end.line][: end.column]


def _check(args: argparse.Namespace, target: Target) -> None:
    """What can be wrong before anything is read.

    Raises:
        WrongUsage, NoEditError
    """
    if target.path == STDIN and args.instruction in (None, "-"):
        raise WrongUsage("stdin can hold the text or the instruction, not both: give the instruction")
    if args.instruction is not None and not args.instruction.strip():
        raise WrongUsage(_NO_INSTRUCTION)
    if not args.write:
        return
    if target.path == STDIN:
        raise WrongUsage("--write needs a file; the text came from stdin")
    if os.path.isfile(target.path) and not os.access(target.path, os.W_OK):
        raise NoEditError(NoEdit.READ_ONLY)


def _instruction(args: argparse.Namespace) -> str:
    given: str | None = args.instruction
    if given is not None and given != "-":
        return given
    if sys.stdin.isatty():
        print("Instruction, then Ctrl-D:", file=sys.stderr)
    # Whatever the locale makes of other bytes: they are words for a model.
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise WrongUsage(_NO_INSTRUCTION)
    return text


def _read(target: Target) -> TextFile:
    if target.path != STDIN:
        return read_text_file(Path(target.path))
    if sys.stdin.isatty():
        print("Text, then Ctrl-D:", file=sys.stderr)
    try:
        # Not sys.stdin: it would translate line ends.
        file = TextFile.of(sys.stdin.buffer.read())
    except UnicodeDecodeError as error:
        raise WrongUsage(f"the text on stdin is not UTF-8 (byte {error.start})") from None
    if has_private_key(file.text.splitlines()):
        raise NoEditError(NoEdit.EXCLUDED, "The text on stdin holds a private key, which no model is shown.")
    return file


def _snapshot(target: Target, text: str) -> Snapshot:
    return Snapshot.of(text, uri="stdin") if target.path == STDIN else snapshot_of(Path(target.path), text)


def _ask(
    engine: TextEngine, selection: Selection, instruction: str, options: EditOptions
) -> tuple[Rewritten, GenerationResult]:
    prepared = prepare_edit(selection, instruction, engine, options)
    generation = engine.submit(prepared.request)
    for chunk in generation.chunks():
        prepared.rewrite.feed(chunk.text)
        if prepared.rewrite.done:
            generation.cancel()
    result = generation.future.result()
    return prepared.rewrite.finish(result.finish_reason in TRUNCATED), result


def _show(
    args: argparse.Namespace,
    out: TextIO,
    target: Target,
    file: TextFile,
    edited: TextFile,
    rewritten: Rewritten,
) -> None:
    if args.diff:
        for line in _diff(target.path, file.mark + file.text, edited.mark + edited.text):
            out.write(line)
    elif args.write:
        try:
            _write(Path(target.path), file, edited)
        except OSError as error:
            message = f"{target.path} cannot be written: {error.strerror}."
            raise NoEditError(NoEdit.READ_ONLY, message) from error
        print(f"{target.path}: {rewritten.summary}", file=sys.stderr)
    else:
        out.write(edited.mark + edited.text)


def _diff(path: str, old: str, new: str) -> list[str]:
    """As ``patch -p1`` and ``git apply`` take it in the working directory, line ends and the lack of the last
    one included."""
    name = _name_in_diff(path)
    before, after = _LINE.findall(old), _LINE.findall(new)
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]


def _name_in_diff(path: str) -> str:
    """Relative where the file lies below the working directory; neither program takes another one anyway."""
    if path == STDIN:
        return path
    absolute = os.path.abspath(path)
    below = absolute.startswith(os.path.join(os.getcwd(), ""))
    name = (os.path.relpath(absolute) if below else absolute.lstrip(os.sep)).replace(os.sep, "/")
    # As git has it: without the tab a name would end at its first blank.
    return name + "\t" if " " in name else name


def _write(path: Path, before: TextFile, after: TextFile) -> None:
    """Change a file.

    Raises:
        NoEditError: ``stale``: the file is not what it was ``before`` any more.
        OSError: it cannot be written.
    """
    if path.read_bytes() != before.data:
        raise NoEditError(NoEdit.STALE, "The file changed meanwhile; ask again.")
    replace_text_file(path, after.data)


def _figures(
    edited: TextFile, rewritten: Rewritten, result: GenerationResult, load_ms: float
) -> dict[str, Any]:
    timings = result.timings
    return {
        "text": edited.mark + edited.text,
        "summary": rewritten.summary,
        "flags": [flag.value for flag in rewritten.flags],
        "finish_reason": result.finish_reason.value,
        "token_ids": list(result.token_ids),
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
