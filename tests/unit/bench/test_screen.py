"""Ghost text: what it would insert, how much is right, what is taken of it."""

from __future__ import annotations

import pytest

from bench.peers.base import Reply
from bench.replay.screen import ghost_text, is_right, portion, right_chars


def shown(text: str, start: int, end: int) -> Reply:
    return Reply("shown", text, start, end, 1.0, "model")


def test_ghost_text_is_what_would_be_inserted() -> None:
    assert ghost_text(shown("(x)", 3, 3), "foo", 3) == "(x)"
    assert ghost_text(shown("foo(x)", 0, 3), "foo", 3) == "(x)"
    assert ghost_text(shown("x)", 4, 5), "foo()", 4) == "x"
    assert ghost_text(Reply("nothing", "", 3, 3, 1.0, "none"), "foo", 3) == ""


@pytest.mark.parametrize(
    "reply", [shown("bar(x)", 0, 3), shown("(x]", 3, 4), shown("x", 5, 5), shown("x", 0, 9)]
)
def test_a_suggestion_that_would_change_other_text_is_not_shown(reply: Reply) -> None:
    assert ghost_text(reply, "foo)", 3) == ""


def test_right_chars() -> None:
    assert right_chars("return a", "return b") == 7
    assert right_chars("", "x") == right_chars("x", "") == 0
    assert right_chars("return", "return x") == 6


def test_right_means_all_of_it_but_blanks_at_the_end() -> None:
    assert is_right("return x\n", "return x")
    assert is_right("return", "return x")
    assert not is_right("return x + 1", "return x")
    assert not is_right("  \n", "  \nx")


def test_portions() -> None:
    text, remaining = "return x\nprint(1)", "return x\nprint(2)"
    assert portion("whole", text, remaining) == ""
    assert portion("line", text, remaining) == "return x"
    assert portion("word", text, remaining) == "return"
    assert portion("none", "return x", remaining) == ""
    assert portion("whole", "return x\n", remaining) == portion("line", "return x\n", remaining) == "return x"
    assert portion("word", " x", remaining) == ""


def test_too_little_is_not_worth_a_key() -> None:
    assert portion("whole", "re", "return") == portion("word", "):", "):\n") == ""
