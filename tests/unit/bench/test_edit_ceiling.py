"""What copying could bring to an edit."""

from __future__ import annotations

import pytest

from bench.speculation.edit_ceiling import Edit, ceiling, kept_lines, table
from bench.speculation.simulate import Costs

FLAT = Costs({1: 10.0, 64: 10.0})


def test_what_is_the_same_costs_a_forward_for_each_block() -> None:
    old = list(range(64))
    assert ceiling(old, old, FLAT) == pytest.approx(32.0)
    # One token in the middle is new: two blocks, each of at most 32 rows, and it.
    new = [*old[:32], 99, *old[33:]]
    assert ceiling(old, new, FLAT) == pytest.approx(64 / 3)
    assert ceiling(old, [99, 98, 97], FLAT) == pytest.approx(1.0)
    assert ceiling(old, [], FLAT) == 1.0


def test_rows_are_paid_for() -> None:
    costs = Costs({1: 10.0, 32: 40.0})
    assert ceiling(list(range(32)), list(range(32)), costs) == pytest.approx(8.0)


def test_lines_that_stay() -> None:
    assert kept_lines("a\nb\nc\nd\n", "a\nx\nc\nd") == 0.75
    assert kept_lines("", "a") == 0.0


def test_the_table_has_both_kinds() -> None:
    edits = [Edit(1.0, 8.0, 6.0, 10.0), Edit(0.9, 6.0, 5.0, 8.0), Edit(0.1, 1.0, 1.5, 2.0)]
    rows = table(edits).splitlines()
    assert len(rows) == 3 and rows[1].split()[:2] == ["all", "3"]
    assert rows[2].startswith(">= 80% of lines kept") and "7.00" in rows[2]
