"""``draftline demo``: fetch the model if it is missing, and show and measure what it does."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from inference.api import Draft, EngineConfig, EngineState, EngineStatus, TextEngine
from inference.diagnosis.machine import Cores, look
from inference.errors import EngineStopped
from inference.paths import home
from inference.precision import precision_of
from inference.weights import store
from lsp_server import __version__
from lsp_server.commands.progress import TerminalProgress
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from
from lsp_server.demo.places import Place, places
from lsp_server.demo.screen import Screen
from lsp_server.demo.trials import Duel, OneMoreKey, Shot, Trials
from lsp_server.engine_host import load_engine
from lsp_server.stdio import clean_stdout

SVG_WIDTH = 104
# Others may use this much of a core before the demo says that its times suffer from it.
BUSY_CORES = 0.5


@dataclass(frozen=True)
class Results:
    """What the demo found."""

    shots: tuple[Shot, ...]
    duels: tuple[Duel, ...]
    key: OneMoreKey | None

    @property
    def failure(self) -> str:
        """Why the demo has failed, "" if it has not."""
        if not any(shot.suggestion is not None for shot in self.shots):
            return "No place got a suggestion: " + "; ".join(shot.reason for shot in self.shots) + "."
        if not all(duel.same for duel in self.duels):
            return "Speculative and plain text differ."
        if self.key is not None and not self.key.same:
            return "The text depends on what was in the cache."
        return ""


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="fetch the model if it is missing, and see suggestions, speed and exactness",
        description="Completes real places in Draftline's own source files as an editor would show them,"
        " and measures decoding with and without speculation, with cold and warm cache. Downloads the"
        " model without asking if it is not on this machine. Exit status 1 if no suggestion came or"
        " texts differ.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the show")
    parser.add_argument("--svg", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    add_switches(parser)


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 if real suggestions came, else 1, 2 for wrong usage."""
    try:
        settings = settings_from(args)
    except WrongUsage as error:
        print(f"draftline demo: {error}", file=sys.stderr)
        return 2
    config = settings.engine_config()
    with clean_stdout() as out:
        console = _console(out, record=args.svg is not None, quiet=args.json)
        screen = Screen(console)
        with TerminalProgress() as progress:
            for model, mixed in ((config.model, config.mixed), (config.draft_model, "")):
                if model is not None:
                    store.prepare(model, config.numerics, allow_download=True, progress=progress, mixed=mixed)
        cores = look(home()).cores
        config = beside_others(config, cores)
        with _loaded(config) as engine:
            trials = Trials(engine, settings.completion_options())
            _introduce(screen, config, cores)
            results = show(trials, list(places()), settings.draft, screen)
        if results.failure:
            print(f"draftline demo: {results.failure}", file=sys.stderr)
        else:
            screen.say("")
            screen.say("Every figure was measured in this run.", "bold")
        if args.json:
            print(json.dumps(as_json(results), ensure_ascii=False), file=out)
        if args.svg is not None:
            args.svg.write_text(_svg(console), encoding="utf-8")
    return 1 if results.failure else 0


def show(trials: Trials, where: list[Place], draft: Draft, screen: Screen) -> Results:
    """Run all trials, each shown as soon as it is done."""
    screen.heading("Suggestions, as an editor shows them")
    shots: list[Shot] = []
    duels: list[Duel] = []
    speculative: Draft = "auto" if draft == "none" else draft
    for place in where:
        shot = trials.shoot(place, speculative)
        screen.shot(shot)
        shots.append(shot)
    good = [shot for shot in shots if shot.suggestion is not None]
    key = None
    if good:
        screen.heading("Speculation: the same text in fewer forward passes")
        duels = [trials.duel(shot) for shot in good]
        screen.duels(duels)
        screen.heading("The cache: typing one more character")
        key = trials.one_more_key(good[0])
        screen.one_more_key(key)
    return Results(tuple(shots), tuple(duels), key)


def as_json(results: Results) -> dict[str, Any]:
    """The object of ``--json``; documents are named and not repeated."""

    def named(place: Place) -> dict[str, Any]:
        return {
            "title": place.spot.title,
            "file": place.spot.file,
            "line": place.cursor.line + 1,
            "column": place.cursor.column + 1,
        }

    def entry(value: Shot | Duel | OneMoreKey) -> dict[str, Any]:
        # Leave the documents out before `asdict` copies them.
        slim = replace(value, place=None)  # type: ignore[arg-type]
        return {**asdict(slim), "place": named(value.place)}

    return {
        "failure": results.failure,
        "shots": [entry(shot) for shot in results.shots],
        "duels": [entry(duel) for duel in results.duels],
        "key": None if results.key is None else entry(results.key),
    }


def _introduce(screen: Screen, config: EngineConfig, cores: Cores) -> None:
    screen.say(
        f"Draftline {__version__}: {config.model}, {precision_of(config)}, on {cores.usable} cores of "
        f"{cores.processor}. Nothing leaves this machine."
    )
    if _is_busy(cores):
        names = ", ".join(process.name for process in cores.busy[:3]) or "other programs"
        threads = "" if config.threads is None else f" Running with {config.threads} threads."
        screen.say(
            f"{cores.usable - cores.free:.1f} cores are busy with other work ({names}): times are longer "
            f"than they need be.{threads}",
            "yellow",
        )


def beside_others(config: EngineConfig, cores: Cores) -> EngineConfig:
    """Fewer threads where other programs use the cores, unless the user chose a number.

    Threads that wait for one whose core is taken make every step many times slower; the text is the same
    with any number.
    """
    if config.threads is not None or config.device != "cpu" or not _is_busy(cores):
        return config
    return replace(config, threads=max(1, int(cores.free + BUSY_CORES)))


def _is_busy(cores: Cores) -> bool:
    return cores.usable - cores.free > BUSY_CORES


@contextlib.contextmanager
def _loaded(config: EngineConfig) -> Iterator[TextEngine]:
    """A ready engine, with a bar on stderr while it loads."""
    settled = threading.Event()
    last = [EngineStatus(EngineState.STARTING)]
    console = Console(file=sys.stderr, highlight=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("Loading the model.", total=1.0)

    def on_status(status: EngineStatus) -> None:
        last[0] = status
        bar.update(task, description=status.message, completed=status.fraction or 0.0)
        if status.state not in (EngineState.STARTING, EngineState.LOADING):
            settled.set()

    engine = load_engine(config, on_status)
    try:
        with bar:
            engine.start()
            settled.wait()
        status = last[0]
        if status.state is not EngineState.READY:
            failure = EngineStopped(status.message or "The model did not load.", status.next_step)
            failure.code = status.code or failure.code
            raise failure
        yield engine
    finally:
        engine.close()


def _console(out: TextIO, *, record: bool, quiet: bool) -> Console:
    if record:
        return Console(
            file=out, record=True, width=SVG_WIDTH, force_terminal=True, color_system="truecolor",
            highlight=False, quiet=quiet,
        )  # fmt: skip
    return Console(file=out, highlight=False, quiet=quiet)


def _svg(console: Console) -> str:
    picture = console.export_svg(title="draftline demo", unique_id="draftline-demo")
    # rich's template loads a web font; a picture of a private tool must not call anyone.
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", picture, flags=re.DOTALL)
