"""Who accepted what: by command and by what edits insert."""

from __future__ import annotations

import pytest

from lsp_server.completion.acceptance import Acceptance, Accepted
from lsp_server.documents.text import Point
from tests.unit.lsp.editor import URI, Editor, text_of

TEXT = "return a + b\n    # done"


@pytest.mark.parametrize(
    ("inserted", "accepted"),
    [
        (TEXT, Accepted("whole", len(TEXT))),
        ("return a + b", Accepted("line", 12)),
        ("return a + b\n", Accepted("line", 13)),
        ("return", Accepted("word", 6)),
        ("return ", Accepted("word", 7)),
        ("r", None),
        ("return a", None),
        ("other", None),
    ],
)
def test_an_edit_that_inserts_what_was_shown(inserted: str, accepted: Accepted | None) -> None:
    acceptance = Acceptance()
    acceptance.show(URI, Point(1, 4), ("something", TEXT))
    assert acceptance.edited(URI, Point(1, 5), TEXT, False) is None, "elsewhere"
    acceptance.show(URI, Point(1, 4), ("something", TEXT))
    assert acceptance.edited(URI, Point(1, 4), inserted, False) == accepted


def test_word_by_word_and_keys_in_between() -> None:
    acceptance = Acceptance()
    acceptance.show(URI, Point(1, 4), (TEXT,))
    steps = ["return", " ", "a", " +", " b\n", "    # done"]
    column, found = 4, []
    for step in steps:
        at = Point(2, 0) if step == steps[-1] else Point(1, column)
        found.append(acceptance.edited(URI, at, step, False))
        column += len(step)
    assert [taken and taken.amount for taken in found] == ["word", None, None, "word", "line", "whole"]


def test_a_command_and_its_edit_count_once() -> None:
    for command_first in (True, False):
        acceptance = Acceptance()
        acceptance.show(URI, Point(0, 0), ("value",))
        acceptance.item("1", URI, 5)
        if command_first:
            found = [acceptance.accepted("1"), acceptance.edited(URI, Point(0, 0), "value", False)]
        else:
            found = [acceptance.edited(URI, Point(0, 0), "value", False), acceptance.accepted("1")]
        assert found == [Accepted("whole", 5), None]
        assert acceptance.accepted("1") is None
    assert acceptance.accepted("unknown") is None


def test_an_acceptance_that_replaces_what_the_editor_closed() -> None:
    acceptance = Acceptance()
    acceptance.show(URI, Point(0, 2), ("a)",))
    assert acceptance.edited(URI, Point(0, 2), "a)", True) == Accepted("whole", 2)
    acceptance.show(URI, Point(0, 2), ("a)",))
    assert acceptance.edited(URI, Point(0, 2), "a", True) is None


async def test_counts_of_a_session() -> None:
    editor = Editor("x = ", "value + 1", free=True)
    assert text_of(await editor.ask(0, 4)) == "value + 1"
    editor.type(0, 4, "v")
    await editor.ask(0, 5)
    editor.type(0, 5, "alue")
    await editor.ask(0, 9)
    editor.type(0, 9, " + 1")
    editor.type(0, 13, "\n  ")
    editor.type(1, 2, "a long text from the clipboard")
    editor.type(0, 0, "()")
    counts = editor.service.statistics.totals().counts
    assert counts["acceptedWord"] == 1 and counts["acceptedWhole"] == 1
    assert counts["charactersAccepted"] == 8
    assert counts["charactersTyped"] == 3
