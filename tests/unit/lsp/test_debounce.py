"""How long an automatic request waits, by the user's pace."""

from __future__ import annotations

import pytest

from lsp_server.completion.debounce import Average, Debounce

URI = "file:///work/x.py"


def typed(gap: float, answers: float | None, keys: int = 20) -> tuple[Debounce, float]:
    """After ``keys`` keys ``gap`` seconds apart; and the time of the last one."""
    debounce = Debounce()
    now = 100.0
    for _ in range(keys):
        now += gap
        debounce.edited_at(URI, now)
    if answers is not None:
        debounce.answered(answers)
    return debounce, now


def test_the_setting_holds_until_the_pace_is_known() -> None:
    for keys, answers in ((3, 0.01), (20, None)):
        debounce, now = typed(0.2, answers, keys)
        assert debounce.left(URI, 100, now) == pytest.approx(0.1)
        assert debounce.left(URI, 100, now + 0.06) == pytest.approx(0.04), "what was waited counts"
        assert debounce.left(URI, 100, now + 0.2) == 0
        assert debounce.left(URI, 0, now) == 0
    assert debounce.left("file:///other", 100, now) == 0


def test_no_wait_if_the_answer_comes_before_the_next_key() -> None:
    debounce, now = typed(0.2, 0.1)
    assert debounce.left(URI, 100, now) == 0
    assert debounce.left(URI, 100, now + 0.09) == 0


def test_wait_while_the_next_key_is_likely_to_come_first_up_to_the_setting() -> None:
    debounce, now = typed(0.2, 0.5)
    assert debounce.left(URI, 1000, now) == pytest.approx(0.2, abs=0.02)
    assert debounce.left(URI, 1000, now + 0.15) == pytest.approx(0.05, abs=0.02)
    assert debounce.left(URI, 1000, now + 0.3) == 0, "the burst is over"
    assert debounce.left(URI, 30, now) == pytest.approx(0.03)


def test_pauses_are_no_part_of_the_pace() -> None:
    debounce, now = typed(0.2, 0.5)
    debounce.edited_at(URI, now + 600)
    assert debounce.left(URI, 1000, now + 600) == pytest.approx(0.2, abs=0.02)


def test_average_follows_what_is_new() -> None:
    average = Average()
    for _ in range(50):
        average.add(1.0)
    assert (average.mean, average.deviation) == (1.0, 0.0)
    for _ in range(50):
        average.add(3.0)
    assert 2.9 < average.mean < 3.0 and 0 < average.deviation < 0.5
