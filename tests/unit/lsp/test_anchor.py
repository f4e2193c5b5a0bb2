"""The anchor: what it keeps while the user types, and when it moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.context.anchor import MAX_LINES, Anchors
from lsp_server.context.window import Budget, Window, choose
from lsp_server.documents.text import Point, Snapshot
from tests.fake_engine import FakeCodec

BUDGET = Budget(1000, 200)
LINES = [f"value_{number} = {number}" for number in range(200)]


def words(line: str) -> int:
    return len(line) // 4 + 1


def ask(anchors: Anchors, lines: list[str], line: int, uri: str = "a", budget: Budget = BUDGET) -> Window:
    snapshot = Snapshot.of("\n".join(lines), uri)
    window = anchors.choose(snapshot, Point(line, len(lines[line])), budget, words)
    shown = window.above + window.middle + window.head
    assert shown == snapshot.lf(window.first_line, line) + lines[line], "not the text before the cursor"
    return window


def test_without_requests_before_it_is_the_cursor_s_line() -> None:
    window = ask(Anchors(), LINES[:40], 20)
    snapshot = Snapshot.of("\n".join(LINES[:40]), "a")
    assert window == choose(snapshot, Point(20, len(LINES[20])), BUDGET, words)
    assert window.middle == ""


def test_new_lines_go_to_the_middle_until_there_are_too_many() -> None:
    anchors, lines = Anchors(), LINES[:100]
    first = ask(anchors, lines, 50)
    for typed in range(1, MAX_LINES + 1):
        lines.insert(50 + typed, "typed = 1")
        window = ask(anchors, lines, 50 + typed)
        assert (window.above, window.first_line) == (first.above, first.first_line)
        assert window.middle_lines == typed
        assert window.suffix == first.suffix
    lines.insert(51, "typed = 1")
    window = ask(anchors, lines, 51 + MAX_LINES)
    assert window.middle == ""
    assert window.above.startswith(first.above), "what was read stays, and more is behind it"


def test_many_tokens_move_it_sooner() -> None:
    anchors, lines = Anchors(), LINES[:100]
    ask(anchors, lines, 50)
    lines[51:51] = ["long = " + "x" * 700, ""]
    assert ask(anchors, lines, 52).middle == ""


def test_a_line_above_it_moves_it_up_to_what_has_changed() -> None:
    anchors, lines = Anchors(), LINES[:100]
    first = ask(anchors, lines, 50)
    lines[47] = "changed = 1"
    window = ask(anchors, lines, 50)
    assert window.middle == "changed = 1\nvalue_48 = 48\nvalue_49 = 49\n"
    assert first.above.startswith(window.above)
    lines[20] = "changed = 1"
    assert ask(anchors, lines, 50).middle == "", "too far above"


def test_lines_above_the_window_shift_it() -> None:
    anchors = Anchors()
    lines = list(LINES)
    first = ask(anchors, lines, 190)
    assert first.first_line > 10
    lines.insert(191, "")
    ask(anchors, lines, 191)
    lines[3:3] = ["import one", "import two"]
    window = ask(anchors, lines, 193)
    assert (window.above, window.first_line) == (first.above, first.first_line + 2)
    assert window.middle_lines == 1
    del lines[:3]
    assert ask(anchors, lines, 190).above == first.above


def test_the_cursor_above_it_moves_it() -> None:
    anchors = Anchors()
    first = ask(anchors, LINES, 190)
    window = ask(anchors, LINES, 180)
    assert window.middle == "" and first.first_line == window.first_line
    assert ask(anchors, LINES, 20).first_line == 0


def test_another_text_another_document_and_another_budget_are_fresh() -> None:
    anchors = Anchors()
    ask(anchors, LINES, 50)
    other = [f"other_{number}" for number in range(100)]
    assert ask(anchors, other, 52) == ask(Anchors(), other, 52)
    ask(anchors, LINES, 50)
    assert ask(anchors, LINES, 52, uri="b") == ask(Anchors(), LINES, 52)
    assert ask(anchors, LINES, 52, budget=replace(BUDGET, prefix=800)).middle == ""


def test_old_and_closed_documents_are_forgotten() -> None:
    anchors = Anchors()
    ask(anchors, LINES, 50)
    anchors.forget("a")
    anchors.forget("never opened")
    assert ask(anchors, LINES, 52).middle == ""
    for number in range(200):
        ask(anchors, LINES, 50, uri=str(number))
    assert len(anchors._anchors) <= 64
    assert ask(anchors, LINES, 52, uri="0").middle == ""
    assert ask(anchors, LINES, 52, uri="199").middle_lines == 2


EDITS = st.lists(
    st.tuples(st.sampled_from(["newline", "type", "insert", "delete", "move"]), st.integers(0, 10_000)),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(EDITS, st.integers(60, 400))
@pytest.mark.parametrize("heal", [True, False])
def test_any_history_gives_the_text_before_the_cursor(
    heal: bool, edits: list[tuple[str, int]], tokens: int
) -> None:
    builders = [PromptBuilder(FakeCodec(), 4096) for _ in range(2)]
    lines, at = [f"value_{number}" for number in range(40)], 20
    options = CompletionOptions(order="lines-in-middle", prompt_tokens=tokens, heal=heal)
    for kind, number in edits:
        where = number % len(lines)
        if kind == "newline":
            at += 1
            lines.insert(at, "")
        elif kind == "type":
            lines[at] += "x" * (number % 9)
        elif kind == "insert":
            lines.insert(where, "new")
            at += where <= at
        elif kind == "delete" and len(lines) > 1:
            del lines[where]
            at = min(at - (where < at), len(lines) - 1)
        elif kind == "move":
            at = where
        snapshot = Snapshot.of("\n".join(lines), "file:///a.py")
        cursor = Point(at, len(lines[at]))
        built: list[Any] = [builder.build(snapshot, cursor, options) for builder in builders]
        assert built[0] == built[1], "the same history, the same prompt"
        assert len(built[0].ids) <= tokens
        shown = FakeCodec().show(built[0].ids)
        prefix, _, rest = shown.removeprefix("<|fim_prefix|>").partition("<|fim_suffix|>")
        suffix, _, middle = rest.partition("<|fim_middle|>")
        assert (snapshot.lf(0, at) + lines[at]).endswith(prefix + middle)
        assert ("\n" + snapshot.lf(at + 1, len(lines))).startswith(suffix)
