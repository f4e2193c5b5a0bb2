"""The typist restores every document, and does the same whatever was suggested."""

from __future__ import annotations

import copy
import random
import statistics
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replay import script as script_module
from bench.replay.detours import MOVE_MIN_CHARS
from bench.replay.indentation import indentation_after, indentation_unit
from bench.replay.items import ReplayItem, sample_items
from bench.replay.pieces import pieces
from bench.replay.script import Stroke, TypistScript, apply
from tests.unit.bench.replay_sources import SOURCES

ROOT = Path(__file__).parents[3]
SEED = 11


@cache
def _items() -> list[ReplayItem]:
    """More than 200, of this repository and of small files in all languages."""
    items = sample_items(ROOT / "inference", 80, SEED, "inference")
    items += sample_items(ROOT / "lsp_server", 80, SEED, "lsp_server")
    for name, (language, text) in SOURCES.items():
        for piece in pieces(text, language, random.Random(SEED)):
            parts = text[: piece.start], text[piece.start : piece.end], text[piece.end :]
            items.append(ReplayItem(len(items), piece.kind, name, language, *parts))
    assert len(items) > 200
    return items


def _typed(item: ReplayItem, seed: int = SEED) -> list[Stroke]:
    """All strokes of a user who never takes a suggestion."""
    script = TypistScript(item, seed)
    return list(iter(script.next_stroke, None))


def _item(before: str, removed: str, after: str = "\n", language: str = "python") -> ReplayItem:
    return ReplayItem(0, "body", "x", language, before, removed, after)


@pytest.fixture
def no_slips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_module, "SLIP_RATE", 0.0)


@pytest.fixture
def no_detours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.replay.detours.MOVE_RATE", 0.0)
    monkeypatch.setattr("bench.replay.detours.EDIT_RATE", 0.0)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_taken_suggestions_end_in_the_original(data: st.DataObject) -> None:
    item = data.draw(st.sampled_from(_items()))
    script = TypistScript(item, data.draw(st.integers(0, 1000)))
    chance = data.draw(st.randoms(use_true_random=False))
    share = data.draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    document = item.before + item.after
    cursor = len(item.before)
    for _ in range(20 * len(item.removed)):
        if script.takeable and chance.random() < share:
            taken = script.remaining[: chance.randint(1, len(script.remaining))]
            document = document[:cursor] + taken + document[cursor:]
            script.took(taken)
            cursor += len(taken)
        else:
            stroke = script.next_stroke()
            if stroke is None:
                break
            document = apply(document, stroke)
            cursor = _offset(document, stroke.cursor)
        assert document == script.document
        if script.takeable:
            assert document[:cursor].endswith(item.removed[: len(item.removed) - len(script.remaining)])
    assert document == item.original
    assert script.remaining == ""


def _offset(document: str, place: tuple[int, int]) -> int:
    lines = document.split("\n")
    assert place[1] <= len(lines[place[0]])
    return sum(len(line) + 1 for line in lines[: place[0]]) + place[1]


def test_every_item_is_restored_by_typing_alone() -> None:
    for item in _items():
        document = item.before + item.after
        for stroke in _typed(item):
            document = apply(document, stroke)
        assert document == item.original


def test_slips_and_pauses_depend_on_the_place_alone() -> None:
    actions = []
    for item in _items():
        alone = _strokes_by_place(item, 0.0)
        helped = _strokes_by_place(item, 0.15)
        for place in alone.keys() & helped.keys():
            assert alone[place] == helped[place]
            actions.append(alone[place][0])
    assert len(actions) > 1000 and actions.count("typo") > 10


def _strokes_by_place(item: ReplayItem, share: float) -> dict[tuple[int, bool], tuple[str, str, float]]:
    """Keys typed where nothing is wrong: (characters missing, typed again after a slip) -> the key.

    Steps of indentation are left out: behind a suggestion that ends with a line they are keys, elsewhere the
    editor's.
    """
    script, chance = TypistScript(item, SEED), random.Random(5)
    found: dict[tuple[int, bool], tuple[str, str, float]] = {}
    slipped = False
    while True:
        if script.takeable and not slipped and chance.random() < share:
            script.took(script.remaining[: chance.randint(1, len(script.remaining))])
        missing, takeable = script.remaining, script.takeable
        stroke = script.next_stroke()
        if stroke is None:
            return found
        if takeable and stroke.action in ("type", "typo", "newline") and missing[0] not in " \t":
            found[len(missing), slipped] = (stroke.action, stroke.text, stroke.pause_ms)
            slipped = stroke.action == "typo"


def test_a_copy_looks_ahead_without_a_trace() -> None:
    for item in _items()[:40]:
        script = TypistScript(item, SEED)
        strokes = []
        while (peeked := copy.copy(script).next_stroke()) is not None:
            strokes.append(script.next_stroke())
            assert strokes[-1] == peeked
        assert strokes == _typed(item)


def test_other_seeds_and_items_type_differently() -> None:
    item = next(item for item in _items() if len(item.removed) > 200)
    assert _typed(item) == _typed(item)
    assert _typed(item, 1) != _typed(item, 2)


def test_editor_and_typist_indent_together(no_slips: None, no_detours: None) -> None:
    item = _item(
        "def f(x):\n    ",
        "if x:\n        g(x)\n\n    h(\n            x)\n    return x",
        language="python",
    )
    strokes = [s for s in _typed(item) if s.action != "type" or s.text.isspace()]
    assert [(s.action, s.text, s.start[1] - s.end[1]) for s in strokes] == [
        ("type", " ", 0),
        ("newline", "\n        ", 0),  # one level deeper behind the colon
        ("newline", "\n        ", 0),
        ("newline", "\n        ", -8),  # no blanks stay on the empty line
        ("backspace", "", -4),
        ("newline", "\n        ", 0),  # behind the bracket
        ("type", "    ", 0),
        ("newline", "\n            ", 0),
        ("backspace", "", -4),
        ("backspace", "", -4),
        ("type", " ", 0),
    ]


def test_tabs_are_steps_too(no_slips: None, no_detours: None) -> None:
    item = _item("func f() {\n\tg()\n\t", "if x {\n\t\th()\n\t}", "\n}\n", "go")
    texts = [(s.action, s.text) for s in _typed(item) if s.action != "type"]
    assert texts == [("newline", "\n\t\t"), ("newline", "\n\t\t"), ("backspace", "")]


def test_indentation_is_typed_behind_a_suggestion_that_ends_with_a_line(
    no_slips: None, no_detours: None
) -> None:
    script = TypistScript(_item("def f(x):\n    y = 1\n    ", "z = x\n    return z"), SEED)
    script.took("z = x\n")
    strokes = list(iter(script.next_stroke, None))
    assert strokes[0].text == "    "
    assert "".join(stroke.text for stroke in strokes) == "    return z"


def test_slips_are_neighbours_seen_soon_and_corrected(
    no_detours: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_module, "SLIP_RATE", 1.0)
    unnoticed = set()
    for seed in range(20):
        strokes = _typed(_item("x = 1\n", "Good() and k"), seed)
        assert strokes[0].action == "typo" and strokes[0].text in ("F", "H")
        assert sum(s.action == "typo" for s in strokes) == len("Goodandk")
        further = [s.action for s in strokes].index("backspace") - 1
        unnoticed.add(further)
        assert [s.action for s in strokes[1 + further : 2 + 2 * further]] == ["backspace"] * (1 + further)
        assert strokes[2 + 2 * further].text == "G"
        assert strokes[-1].text == "k"
    assert unnoticed == {0, 1, 2}


def test_shares_of_slips_looks_and_lines_above() -> None:
    strokes = [stroke for item in _items() for stroke in _typed(item)]
    letters = sum(s.text.isalpha() for s in strokes if s.action == "type")
    slips = sum(s.action == "typo" for s in strokes)
    assert 0.01 < slips / letters < 0.035
    long = [item for item in _items() if len(item.removed) > MOVE_MIN_CHARS]
    short = [item for item in _items() if len(item.removed) <= MOVE_MIN_CHARS]
    looks = [sum(s.action == "move" for s in _typed(item)) for item in long]
    assert set(looks) == {0, 2}
    assert 0.15 < sum(looks) / 2 / len(long) < 0.5
    assert not any(s.action == "move" for item in short for s in _typed(item))
    edits = [sum(s.action == "edit-above" for s in _typed(item)) for item in _items()]
    assert set(edits) == {0, 2}
    assert 0.1 < sum(edits) / 2 / len(edits) < 0.4


def test_a_look_goes_to_another_place_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.replay.detours.MOVE_RATE", 1.0)
    seen = set()
    for item in _items():
        if len(item.removed) <= MOVE_MIN_CHARS:
            continue
        script = TypistScript(item, SEED)
        gap = (-1, -1)
        for stroke in iter(script.next_stroke, None):
            if stroke.action != "move":
                gap = stroke.cursor
                continue
            assert stroke.start == stroke.end and stroke.text == "" and stroke.ask
            line = script.document.split("\n")[stroke.cursor[0]]
            assert line.strip() and len(line) == stroke.cursor[1]
            assert not script.takeable
            seen.add(stroke.cursor[0] < gap[0])
            assert abs(stroke.cursor[0] - gap[0]) >= 2
            back = script.next_stroke()
            assert back is not None and back.action == "move" and back.cursor == gap
    assert seen == {True, False}


def test_a_line_above_shifts_the_gap_and_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.replay.detours.EDIT_RATE", 1.0)
    texts = []
    for item in _items():
        strokes = _typed(item)
        edits = [s for s in strokes if s.action == "edit-above"]
        if not edits:
            assert item.before.count("\n") < 10
            continue
        put, out = edits
        texts.append(put.text.strip())
        key = next(
            (s for s in strokes[strokes.index(put) + 1 :] if s.action not in ("edit-above", "move")), None
        )
        assert key is None or key.end == put.cursor
        assert put.start == put.end and put.text.endswith("\n") and put.ask
        assert 3 <= item.before.count("\n") - put.start[0] <= 100
        assert out.start == put.start and out.end == (put.start[0] + 1, 0) and out.text == "" and not out.ask
    assert len(set(texts)) > 5
    assert any(text.startswith("import") for text in texts)
    assert any(text.startswith("//") for text in texts) and any(text.startswith("#") for text in texts)


def test_nothing_is_taken_out_of_turn() -> None:
    script = TypistScript(_item("x = 1\n", "value = x"), SEED)
    for wrong in ("", "x", "value = x\n"):
        with pytest.raises(ValueError, match="cannot be taken"):
            script.took(wrong)
    script.took("value = x")
    assert not script.takeable
    assert script.next_stroke() is None


def test_nothing_can_be_taken_behind_a_slip(no_detours: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_module, "SLIP_RATE", 1.0)
    script = TypistScript(_item("x = 1\n", "value = x"), SEED)
    assert script.takeable
    assert script.next_stroke() is not None
    assert not script.takeable
    assert script.remaining == "value = x"
    with pytest.raises(ValueError, match="cannot be taken"):
        script.took("value")


def test_pauses_look_typed(no_slips: None, no_detours: None) -> None:
    inside, words, lines, everything = [], [], [], []
    for item in _items():
        previous = " "
        for stroke in _typed(item):
            everything.append(stroke.pause_ms)
            if stroke.action == "type" and stroke.text.isalpha():
                if previous.isalpha():
                    inside.append(stroke.pause_ms)
                elif previous == " ":
                    words.append(stroke.pause_ms)
                elif previous.startswith("\n"):
                    lines.append(stroke.pause_ms)
            previous = stroke.text
    assert 130 < statistics.median(inside) < 170
    assert statistics.median(inside) < statistics.median(words) < statistics.median(lines)
    assert 330 < statistics.median(lines) < 520
    assert 0.002 < sum(pause >= 1000 for pause in everything) / len(everything) < 0.05
    assert min(everything) >= 30 and max(everything) <= 4000


@pytest.mark.parametrize(
    "text, unit",
    [
        ("a:\n  b\n  c:\n    d\n", "  "),
        ("a:\n    b\n    c(d,\n            e)\n    f:\n        g\n", "    "),
        ("a {\n\tb {\n\t\tc\n\t}\n}\n", "\t"),
        ("a\nb\n", "    "),
    ],
)
def test_units(text: str, unit: str) -> None:
    assert indentation_unit(text) == unit


@pytest.mark.parametrize(
    "line, language, indentation",
    [
        ("  f(x)", "python", "  "),
        ("  if x: ", "python", "    "),
        ("  case x:", "javascript", "  "),
        ("  f(", "go", "    "),
        ("  x = [", "java", "    "),
        ("   ", "python", "   "),
        ("", "rust", ""),
    ],
)
def test_editors_indent_new_lines(line: str, language: str, indentation: str) -> None:
    assert indentation_after(line, language, "  ") == indentation
