"""``draftline demo``: places, trials, screen, exit status."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inference.api import EngineConfig
from inference.diagnosis.machine import Cores
from inference.engine import Engine
from lsp_server.commands import demo
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import Suggestion
from lsp_server.completion.ranges import ItemRange
from lsp_server.demo import places
from lsp_server.demo.places import SPOTS, Place, Spot
from lsp_server.demo.screen import Screen
from lsp_server.demo.trials import Duel, OneMoreKey, Pace, Shot, Trials
from lsp_server.documents.text import Point, Snapshot
from tests.fake_engine import FakeEngine

SMALL = ("--context", "1024", "--max-new-tokens", "24")


def draftline(*arguments: str) -> int:
    parser = argparse.ArgumentParser("draftline")
    demo.add_arguments(parser.add_subparsers(required=True))
    return demo.run(parser.parse_args(["demo", *arguments]))


def place(text: str = "def f(x):\n    return x\n", line: int = 1, column: int = 4) -> Place:
    spot = Spot("a place", "some/file.py", "", "")
    return Place(spot, Snapshot.of(text, "file:///file.py", 0, "python"), Point(line, column))


def shot(text: str, at: Place | None = None) -> Shot:
    at = at or place()
    column = at.cursor.column
    return Shot(at, Suggestion(text, ItemRange(column, column)), "", 9, 1.0, 2.0)


def shown(result: Shot, **options: object) -> str:
    out = StringIO()
    Screen(Console(file=out, width=60, **options)).shot(result)  # type: ignore[arg-type]
    return out.getvalue()


def test_all_spots_are_in_their_files() -> None:
    assert len(list(places.places())) == len(SPOTS)
    for spot in SPOTS:
        found = places.find(spot)
        assert found is not None, f"{spot.file} has changed: the demo needs another place there"
        original = places.path_of(spot).read_text(encoding="utf-8")
        assert len("".join(found.snapshot.lines)) == len(original) - len(spot.removed)
        # Putting the text back gives the file.
        before = "".join(found.snapshot.lines[: found.cursor.line])
        line = found.snapshot.lines[found.cursor.line]
        assert original.startswith(before + line[: found.cursor.column] + spot.removed)
        assert found.snapshot.language_id == "python"


def test_a_changed_file_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Spot("x", "inference/no_such_file.py", "a", "b")
    changed = Spot("x", "lsp_server/protocol.py", "not there", "at all")
    monkeypatch.setattr(places, "SPOTS", (gone, changed, SPOTS[0]))
    assert [found.spot for found in places.places()] == [SPOTS[0]]


def test_typing() -> None:
    typed = place().typed("re")
    assert typed.snapshot.line(1) == "    rereturn x" and typed.cursor == Point(1, 6)


def test_ghost_text_without_styles() -> None:
    text = shown(shot("if x:\n        pass"))
    assert "|{+if x:" in text and "pass+}return x" in text
    assert "some/file.py:2:5" in text and "\x1b" not in text


def test_ghost_text_on_a_terminal() -> None:
    text = shown(shot("ghost"), force_terminal=True, color_system="truecolor", no_color=False)
    assert "▏" in text and "{+" not in text and "\x1b[2;3mghost" in text
    assert "{+ghost+}" in shown(shot("ghost"), force_terminal=True, no_color=True)


def test_text_after_the_cursor_that_is_replaced() -> None:
    at = place("f()\n", 0, 2)
    replaced = Shot(at, Suggestion("x)", ItemRange(2, 3)), "", 9, 1.0, 2.0)
    assert "f(|{+x)+} " in shown(replaced)
    assert "no suggestion (empty)" in shown(Shot(at, None, "empty", 9, 1.0, 2.0))


def test_markup_in_code_is_text() -> None:
    assert "[bold]x[/bold]" in shown(shot("[bold]x[/bold]"))


def test_tables() -> None:
    out = StringIO()
    screen = Screen(Console(file=out, width=100))
    duels = [
        Duel(place(), Pace(40, 40, 1000.0), Pace(40, 20, 500.0), True),
        Duel(place(), Pace(40, 40, 1000.0), Pace(40, 40, 1000.0), False),
    ]
    screen.duels(duels)
    screen.duels([Duel(place(), Pace(0, 0, 0.0), Pace(0, 0, 0.0), True)])
    screen.one_more_key(OneMoreKey(place(), "x", 0.01, 900.0, 40.0, 440, 430, True))
    text = out.getvalue()
    assert "2.00x" in text and "1.33x" in text and "✗ different" in text
    assert "440" in text and "900 ms" in text and "0.01 ms" in text


@pytest.fixture
def tiny_engine(tiny_home: Path, looping_model: Path) -> Iterator[Engine]:
    engine = Engine(EngineConfig(model=str(looping_model), context=1024))
    engine.start()
    engine.wait_ready(60)
    yield engine
    engine.close()


def test_trials_on_a_tiny_model(tiny_engine: Engine) -> None:
    trials = Trials(tiny_engine, CompletionOptions(max_new_tokens=24))
    at = places.find(SPOTS[0])
    assert at is not None
    first = trials.shoot(at, "ngram")
    assert first.prompt_tokens > 100 and 0 < first.first_ms <= first.total_ms
    duel = trials.duel(first)
    assert duel.same and duel.plain.tokens == duel.speculative.tokens
    assert duel.plain.tokens_per_forward == 1.0 and duel.speculative.tokens_per_forward >= 1.0
    key = trials.one_more_key(shot("xyz", at))
    assert key.key == "x" and key.same and key.typed_along_ms is not None
    assert 0 < key.cached_tokens < key.prompt_tokens


def test_the_command_on_a_tiny_model(
    tiny_home: Path, looping_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "demo.svg"
    status = draftline("--model", str(looping_model), *SMALL, "--json", "--svg", str(picture))
    captured = capfd.readouterr()
    results = json.loads(captured.out)
    # A random model may well suggest nothing worth showing; the status must say so then.
    any_text = any(shot["suggestion"] for shot in results["shots"])
    assert status == (0 if any_text else 1)
    assert bool(results["failure"]) == (not any_text)
    assert len(results["shots"]) == len(SPOTS)
    assert all(duel["same"] for duel in results["duels"])


def run_with(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, model: Path) -> int:
    def load(config: EngineConfig, on_status: object) -> FakeEngine:
        engine._on_status = on_status  # type: ignore[assignment]
        return engine

    monkeypatch.setattr(demo, "load_engine", load)
    return draftline("--model", str(model))


def test_the_show(
    tiny_home: Path,
    looping_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run_with(FakeEngine(answer="something()"), monkeypatch, looping_model) == 0
    text = capfd.readouterr().out
    assert "{+something()" in text and "lsp_server/protocol.py" in text and "✓" in text


def test_no_suggestion_is_a_failure(
    tiny_home: Path,
    looping_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run_with(FakeEngine(answer=""), monkeypatch, looping_model) == 1
    captured = capfd.readouterr()
    assert "No place got a suggestion: empty" in captured.err
    assert "measured in this run" not in captured.out


def test_different_texts_are_a_failure() -> None:
    different = Duel(place(), Pace(1, 1, 1.0), Pace(1, 1, 1.0), False)
    assert "differ" in demo.Results((shot("x"),), (different,), None).failure
    key = OneMoreKey(place(), "x", None, 1.0, 1.0, 2, 1, False)
    assert "cache" in demo.Results((shot("x"),), (), key).failure
    assert demo.Results((shot("x"),), (), None).failure == ""


def test_fewer_threads_beside_busy_programs() -> None:
    busy = Cores("CPU", 4, None, 1.3, None, ())
    assert demo.beside_others(EngineConfig(), busy).threads == 1
    assert demo.beside_others(EngineConfig(), replace(busy, free=0.0)).threads == 1
    assert demo.beside_others(EngineConfig(), replace(busy, free=2.6)).threads == 3
    assert demo.beside_others(EngineConfig(), replace(busy, free=3.9)).threads is None
    assert demo.beside_others(EngineConfig(threads=4), busy).threads == 4


def test_a_model_that_cannot_be_loaded(
    tiny_home: Path, looping_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from lsp_server.cli import main

    status = main(["demo", "--model", str(looping_model), "--kv-budget", "1", "--context", "32768"])
    captured = capfd.readouterr()
    assert status == 1 and "--kv-budget" in captured.err


def test_the_picture_calls_nobody(tmp_path: Path) -> None:
    console = Console(file=StringIO(), record=True, width=80)
    Screen(console).shot(shot("ghost"))
    picture = demo._svg(console)
    assert (
        picture.startswith("<svg")
        and "url(" not in picture.replace("url(#", "")
        and "@font-face" not in picture
    )
