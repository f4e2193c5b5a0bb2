"""Figures of the speculation bench."""

from __future__ import annotations

import pytest

from bench.report.speculation import (
    Calls,
    best_mode,
    by_drafter,
    by_match,
    by_position,
    compare,
    figures,
    sweep,
)
from bench.report.speculation_tables import tables
from tests.unit.bench.made_up_records import call


def test_one_group_of_calls() -> None:
    plain = [call(item=0), call(item=1, tokens=31, forwards=30, decode_ms=3000.0)]
    auto = [
        call(mode="auto", item=0, decode_ms=500.0, drafted=8, accepted=5, forwards=5),
        call(
            mode="auto",
            item=1,
            tokens=31,
            decode_ms=1000.0,
            drafted=12,
            accepted=10,
            forwards=20,
            first_ms=230.0,
            digest="different",
        ),
        call(mode="auto", item=2, decode_ms=100.0, drafted=0, accepted=0, forwards=10),  # no plain one
    ]
    found = figures(auto, plain)
    assert found.calls == 3
    assert found.tokens_per_forward == (10 + 30 + 10) / (5 + 20 + 10)
    assert found.acceptance == 15 / 20
    assert found.speed == pytest.approx(50 / 1.6)
    assert found.first_ms == 210.0
    assert found.prompt_speed == pytest.approx(300 / 0.6)
    assert found.lossless == 1 / 2
    assert found.over_plain is not None
    assert (found.over_plain.gain, found.over_plain.items) == (pytest.approx((2 + 3) / 2), 2)


def test_plain_is_not_compared_with_itself() -> None:
    plain = [call()]
    found = figures(plain, plain)
    assert (found.over_plain, found.lossless, found.acceptance) == (None, None, None)


def test_what_peers_do_not_tell() -> None:
    calls = [
        call("peer", "fast", digest="", drafted=None, accepted=None, forwards=None),
        call("peer", "fast", item=1, tokens=1, decode_ms=0.0, prompt_ms=0.0, digest="", forwards=None),
    ]
    found = figures(calls, [])
    assert (found.tokens_per_forward, found.acceptance, found.lossless) == (None, None, None)
    assert found.over_plain is None
    assert found.speed == pytest.approx(10.0)
    silent = figures([call(prompt_ms=0.0, tokens=1, decode_ms=0.0, forwards=0)], [])
    assert (silent.speed, silent.prompt_speed, silent.tokens_per_forward) == (None, None, None)


def test_pairs_are_of_the_same_repeat() -> None:
    # The machine was half as fast in the second repeat: 2x in both, 1x or 4x across.
    plain = [call(repeat=0, decode_ms=1000.0), call(repeat=1, decode_ms=2000.0)]
    auto = [call(mode="auto", repeat=1, decode_ms=1000.0), call(mode="auto", repeat=0, decode_ms=500.0)]
    found = figures(auto, plain).over_plain
    assert found is not None
    assert (found.gain, found.items) == (2.0, 1)


def test_acceptance_by_position() -> None:
    # match, drafted, accepted, rows, ms
    steps = [[2, 3, 3, 4, 1.0], [2, 3, 1, 4, 1.0], [2, 1, 0, 2, 1.0], [0, 0, 0, 1, 1.0]]
    assert by_position([call(steps=steps)], 5) == [(3, 2), (2, 1), (2, 1), (0, 0), (0, 0)]


def test_acceptance_by_match() -> None:
    steps = [[1, 4, 1, 5, 1.0], [2, 4, 2, 5, 1.0], [3, 4, 3, 5, 1.0], [9, 2, 2, 3, 1.0], [0, 0, 0, 1, 1.0]]
    assert by_match([call(steps=steps)], (1, 4)) == [(1, 4, 1), (2, 8, 5), (1, 2, 2)]


def test_a_draft_model_is_a_drafter_without_a_match() -> None:
    # match, drafted, accepted, rows, ms, drafter
    steps = [[2, 3, 3, 4, 1.0, 4], [2, 3, 1, 4, 1.0, 1], [1, 2, 1, 3, 1.0, 4], [0, 0, 0, 1, 1.0, 0]]
    assert by_drafter([call(steps=steps)]) == {"suffix": (1, 3, 1), "model": (2, 5, 4)}
    assert by_match([call(steps=steps)], (1, 4)) == [(0, 0, 0), (1, 3, 1), (0, 0, 0)]
    for shown, drafter in ((True, 4), (False, 1)):
        (table,) = (
            table
            for table in tables([call(mode="auto", steps=[[2, 3, 3, 4, 1.0, drafter]])])[0]
            if table.title == "Accepted by drafter"
        )
        assert ("smaller model" in table.note) is shown
        assert table.rows[0][3] == ("model" if shown else "suffix")


def test_the_sweep_is_apart() -> None:
    calls = [
        call(decode_ms=9000.0),
        call(mode="auto", decode_ms=900.0),
        call(mode="none", decode_ms=1000.0, sweep=True),
        call(mode="ngram<=3", decode_ms=250.0, sweep=True),
        call(mode="ngram<=15", decode_ms=2000.0, sweep=True),
    ]
    groups = Calls(calls)
    assert groups.modes("fim", "draftline") == ["none", "auto"]
    assert figures(groups.of("fim", "draftline", "none"), []).calls == 1
    found = sweep(groups, "fim", "draftline")
    assert {length: comparison.gain for length, comparison in found.items()} == {3: 4.0, 15: 0.5}
    table = next(table for table in tables(calls)[0] if table.title.startswith("Sweep"))
    assert table.columns[2:] == ("up to 3 ↑", "up to 15 ↑")
    assert table.rows == (("fim", "draftline", "4.00x", "0.50x"),)


def test_a_sweep_without_its_own_plain_calls_uses_the_others() -> None:
    calls = Calls([call(decode_ms=1000.0), call(mode="ngram<=3", decode_ms=500.0, sweep=True)])
    assert sweep(calls, "fim", "draftline")[3].gain == 2.0


def test_peers_at_their_best() -> None:
    calls = [
        call(decode_ms=1000.0),
        call(mode="ngram", decode_ms=400.0),
        call(mode="auto", decode_ms=500.0),
        call("peer", "plain", decode_ms=600.0, first_ms=105.0),
        call("peer", "lookup", decode_ms=250.0, first_ms=105.0),
        call("peer", "slow", decode_ms=5000.0, first_ms=105.0),
        call("peer", "lookup", item=7, decode_ms=1.0),  # Draftline did not get there
    ]
    groups = Calls(calls)
    assert best_mode(groups, "fim", "peer") == "lookup"
    found = {comparison.what: comparison for comparison in compare(groups)}
    decoding = found["decoding: auto with lookup"]
    assert (decoding.gain, decoding.items, decoding.behind) == (0.5, 1, True)
    assert found["decoding: both plain"].gain == pytest.approx(0.6)
    assert found["first token"].gain == 0.5


def test_numerics_have_rows_of_their_own() -> None:
    calls = Calls([call(), call(numerics="bf16"), call("peer", "plain", numerics="q8_0")])
    assert calls.systems == ["draftline int8", "draftline bf16", "peer"]
    assert [len(calls.of("fim", system, "none")) for system in calls.systems] == [1, 1, 0]


def test_no_tables_without_calls_and_no_peers_without_draftline() -> None:
    assert tables([]) == ([], [])
    found, comparisons = tables([call("peer", "plain")])
    assert comparisons == []
    assert [table.title for table in found] == ["Decoding by set, system and mode"]
