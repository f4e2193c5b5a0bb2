"""No suggestion is inserted wrongly, in a thousand made-up cases; see README.md for ten thousand."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings

from tests.insertion import applier
from tests.insertion.cases import CASES, Case
from tests.insertion.drive import Outcomes, run


def test_no_wrong_insertion() -> None:
    outcomes = Outcomes()
    loop = asyncio.new_event_loop()

    @settings(
        max_examples=1000,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(CASES)
    def each(case: Case) -> None:
        outcomes.add(run(case, loop), case)

    try:
        each()
    finally:
        loop.close()
    assert outcomes.cases >= 900
    assert outcomes.share >= 0.8, f"too few suggestions to mean anything: {outcomes.counts}"


def test_the_applier_splits_lines_as_the_specification_does() -> None:
    text = "a\r\nb\rc\n\n\x0c\u2028\x85d"
    pieces = [text[start:stop] for start, _, stop in applier.line_spans(text)]
    assert pieces == ["a\r\n", "b\r", "c\n", "\n", "\x0c\u2028\x85d"]


@pytest.mark.parametrize(("encoding", "columns"), [("utf-8", 7), ("utf-16", 4), ("utf-32", 3)])
def test_the_applier_counts_columns(encoding: str, columns: int) -> None:
    text = "x\r\né😀a|"
    assert applier.units("é😀a", 3, encoding) == columns
    place = {"line": 1, "character": columns}
    assert applier.offset(text, place, encoding) == 6 == len(text) - 1
    assert applier.position(text, 6, encoding) == place
    assert applier.offset(text, {"line": 1, "character": 99}, encoding) == len(text)


def test_the_applier_refuses_half_a_character() -> None:
    with pytest.raises(ValueError, match="inside a character"):
        applier.offset("😀", {"line": 0, "character": 1}, "utf-16")
