"""Golden cases of what the lines below tell (tests/golden/stop_policy/<name>.toml); ``¦`` is the cursor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from inference.api import StopRules
from inference.stops import StopChecker
from lsp_server.completion.stop_policy import LINES_BELOW, NAMES, below_cursor
from lsp_server.documents.text import Point, Snapshot

GOLDEN = Path(__file__).parents[2] / "golden" / "stop_policy"


def _place(document: str, language_id: str = "python") -> tuple[Snapshot, Point]:
    before, cursor, after = document.partition("¦")
    assert cursor
    lines = before.split("\n")
    snapshot = Snapshot.of(before + after, "file:///x", language_id=language_id)
    return snapshot, Point(len(lines) - 1, len(lines[-1]))


def _kept(case: dict[str, Any], off: frozenset[str]) -> str:
    snapshot, cursor = _place(case["document"], case["language_id"])
    checker = StopChecker(StopRules(below=below_cursor(snapshot, cursor, off)))
    if checker.push(case["text"]) is None:
        checker.finish()
    return checker.text


def cases() -> list[Any]:
    found = []
    for file in sorted(GOLDEN.glob("*.toml")):
        for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]:
            name = file.stem.replace("_", "-")
            found.append(pytest.param(name, case, id=f"{name}: {case['name']}"))
    return found


@pytest.mark.parametrize(("name", "case"), cases())
def test_golden(name: str, case: dict[str, Any]) -> None:
    assert _kept(case, frozenset()) == case["expect"]
    # No other conclusion does it, and without this one nothing is cut.
    assert _kept(case, frozenset(NAMES) - {name}) == case["expect"]
    assert _kept(case, frozenset(NAMES)) == case["text"]


def test_every_conclusion_has_golden_cases() -> None:
    assert {file.stem.replace("_", "-") for file in GOLDEN.glob("*.toml")} == set(NAMES)


def test_what_is_looked_at() -> None:
    snapshot, cursor = _place("a\n  b¦\n\n\tc \n\nd\n")
    below = below_cursor(snapshot, cursor, frozenset())
    assert below is not None and (below.head, below.lines) == ("  b", ("\tc", "d"))
    snapshot, cursor = _place("¦\n" + "x\n" * 50)
    below = below_cursor(snapshot, cursor, frozenset({"rejoins"}))
    assert below is not None and len(below.lines) == LINES_BELOW and below.body and not below.rejoins


@pytest.mark.parametrize("document", ["a¦ + b\nc\n", "a¦", "a¦\n\n\n", "a¦" + "\n" * 60 + "b\n"])
def test_nothing_below(document: str) -> None:
    assert below_cursor(*_place(document), frozenset()) is None
