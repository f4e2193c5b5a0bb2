"""Comparisons pair by pair."""

from __future__ import annotations

import pytest

from bench.report.numbers import UNKNOWN
from bench.report.pairs import differences, gain_of, ratios


def test_ratio_is_of_the_pairs_not_of_the_medians() -> None:
    # Medians 2 and 4; but item by item the other takes 1.5, 2 and 3 times as long.
    ours, theirs = {0: 2.0, 1: 1.0, 2: 20.0}, {0: 3.0, 1: 2.0, 2: 60.0}
    found = ratios("key", "", "peer", "ms", ours, theirs)
    assert found is not None
    assert (found.gain, found.ours, found.theirs, found.items) == (2.0, 2.0, 3.0, 3)
    assert found.low is not None and found.high is not None
    assert 1.5 <= found.low <= 2.0 <= found.high <= 3.0
    assert not found.behind


def test_direction() -> None:
    slower = ratios("key", "", "peer", "ms", {0: 4.0}, {0: 2.0})
    faster = ratios("speed", "", "peer", "tokens/s", {0: 4.0}, {0: 2.0}, "higher")
    assert slower is not None and faster is not None
    assert (slower.gain, slower.behind, slower.factor) == (0.5, True, 2.0)
    assert (faster.gain, faster.behind) == (2.0, False)


def test_items_that_one_lacks_are_left_out() -> None:
    found = ratios("key", "", "peer", "ms", {0: 1.0, 1: 1.0, 9: 100.0}, {0: 2.0, 1: 2.0, 8: 0.001})
    assert found is not None
    assert (found.gain, found.items) == (2.0, 2)
    assert ratios("key", "", "peer", "ms", {0: 1.0}, {1: 1.0}) is None
    assert differences("share", "", "peer", {0: 1.0}, {1: 1.0}) is None


def test_no_division_by_zero() -> None:
    found = ratios("key", "", "peer", "ms", {0: 0.0, 1: 2.0, 2: 2.0}, {0: 1.0, 1: 0.0, 2: 6.0})
    assert found is not None
    assert (found.gain, found.items) == (3.0, 1)
    nothing = differences("share", "", "peer", {0: 0.0, 1: 0.0}, {0: 0.5, 1: 0.5})
    assert nothing is not None
    assert nothing.behind and nothing.factor == float("inf")


def test_repeats_of_an_item_count_once() -> None:
    ours = {(0, 0): 1.0, (0, 1): 1.0, (0, 2): 1.0, (1, 0): 1.0, (2, 0): 1.0}
    theirs = {(0, 0): 9.0, (0, 1): 9.0, (0, 2): 8.0, (1, 0): 2.0, (2, 0): 3.0}
    found = ratios("key", "", "peer", "ms", ours, theirs, item_of=lambda pair: pair[0])
    assert found is not None
    # By item 9, 2, 3; over all pairs it would be 8.
    assert (found.gain, found.items) == (3.0, 3)


def test_differences_are_means_of_shares() -> None:
    found = differences("right", "", "peer", {0: 0.5, 1: 1.0, 2: 0.0}, {0: 0.25, 1: 1.0, 2: 1.0})
    assert found is not None
    assert found.gain == pytest.approx(-0.25)
    assert (found.ours, found.theirs) == pytest.approx((0.5, 0.75))
    assert found.behind
    assert found.factor == pytest.approx(1.5)
    assert not found.clear


def test_one_item_has_no_interval() -> None:
    for found in (
        ratios("key", "", "peer", "ms", {0: 1.0}, {0: 2.0}),
        differences("share", "", "peer", {0: 1.0}, {0: 0.0}),
    ):
        assert found is not None
        assert (found.low, found.high, found.clear) == (None, None, False)
        assert gain_of(found)[1] == UNKNOWN


def test_a_variant_of_draftline_is_no_peer() -> None:
    found = ratios("key", "", "draftline bf16", "ms", {0: 2.0}, {0: 1.0})
    assert found is not None and not found.behind


def test_equal_values_are_not_behind() -> None:
    found = differences("share", "", "peer", {0: 0.1 + 0.2, 1: 0.3}, {0: 0.3, 1: 0.1 + 0.2})
    assert found is not None
    assert not found.behind and not found.clear
