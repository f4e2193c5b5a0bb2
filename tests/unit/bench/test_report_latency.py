"""Figures of the latency bench."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from bench.report.latency import compare, figures, size_group
from bench.report.latency_tables import tables
from tests.unit.bench.made_up_records import item, key


def test_times_are_of_answers_only() -> None:
    keys = [
        key(ms=10.0),
        key(ms=30.0),
        key(ms=2.0, source="cache"),
        key(ms=0.5, outcome="error", source="none"),  # a refusal is fast
        key(ms=50.0, outcome="superseded"),
        key(ms=None, outcome="timeout", source="none"),
        key(ms=None, outcome="nothing", source="none"),  # silent
        key(ms=20.0, outcome="nothing", text="", right=False, right_chars=0),
    ]
    found = figures(keys, [])
    assert (found.answers.count, found.answers.p50) == (4, 15.0)
    assert (found.model.count, found.model.p50) == (3, 20.0)
    assert found.answered == 4 / 8
    assert found.shown == 3 / 8
    assert found.superseded == found.timeouts == found.errors == 1 / 8
    assert found.from_cache == 1 / 4
    assert found.unasked == 0


def test_on_screen_is_of_all_keys_asked() -> None:
    keys = [
        key(ms=50.0),
        key(ms=50.1),
        key(ms=150.0),
        key(ms=1.0, outcome="nothing"),
        key(ms=None, outcome="timeout"),
    ]
    assert figures(keys, []).within == {50: 1 / 5, 100: 2 / 5, 200: 3 / 5}


def test_right_suggestions() -> None:
    keys = [
        key(),
        key(right=False, right_chars=4, text="retrieve"),
        key(right=False, right_chars=3, text="retry"),
        key(right=False, right_chars=0),
        key(right=True, right_chars=1, text=")"),  # shorter than four, and right
        key(outcome="nothing", text="", right=False, right_chars=0),
    ]
    found = figures(keys, [])
    assert (found.right, found.right_first, found.right_char) == (2 / 5, 3 / 5, 4 / 5)


def test_tokens() -> None:
    keys = [
        key(
            index=3,
            first_ms=100.0,
            model_ms=300.0,
            prompt_tokens=400,
            cached_tokens=300,
            new_tokens=100,
            tokens=11,
            forwards=5,
            drafted=8,
            accepted=6,
        ),
        key(
            index=5,
            first_ms=10.0,
            model_ms=10.0,
            prompt_tokens=100,
            cached_tokens=75,
            new_tokens=25,
            tokens=1,
            forwards=0,
            drafted=0,
            accepted=0,
        ),
        key(item=1, index=0, prompt_tokens=700, cached_tokens=0, new_tokens=700),
        key(source="cache", first_ms=0.0, model_ms=0.0, prompt_tokens=9, cached_tokens=0, tokens=99),
        key(index=9),  # a peer that does not tell
    ]
    found = figures(keys, [])
    assert found.reused == 375 / 1200
    assert found.new_tokens.p50 == 100
    assert found.later_tokens.p50 == found.later_tokens.p95 == 25, "the first call of each item aside"
    assert found.tokens_per_key == 825 / 5
    assert found.decoding == pytest.approx(10 / 0.2)
    assert found.tokens_per_forward == 10 / 5
    assert found.acceptance == 6 / 8
    assert found.first.p50 == 55.0
    assert found.total.p50 == 155.0


def test_items() -> None:
    items = [
        item(typed_chars=30, accepted_chars=10, private_bytes=5, mapped_bytes=None, cpu_seconds=2.0, keys=10),
        item(typed_chars=10, accepted_chars=30, private_bytes=9, mapped_bytes=7, cpu_seconds=None, keys=999),
        item(typed_chars=0, accepted_chars=0, private_bytes=6, cpu_seconds=4.0, keys=20, restored=False),
    ]
    found = figures([], items)
    assert found.saved == 40 / 40
    assert found.private_bytes == 9
    assert found.cpu_seconds == 6.0 / 30
    assert found.restored == 2 / 3


def test_nothing_known() -> None:
    found = asdict(figures([], []))
    assert (found.pop("keys"), found.pop("items")) == (0, 0)
    for value in found.values():
        if isinstance(value, dict):
            assert not any(value.values())
        else:
            assert value is None
    assert figures([], [item(typed_chars=0)]).saved is None


def test_pairs_are_medians_of_finished_items() -> None:
    ours = [key(ms=10.0), key(ms=20.0), key(ms=90.0), item(), key(item=1, ms=40.0), item(item=1)]
    theirs = [
        key("peer", ms=40.0),
        item("peer"),
        key("peer", item=1, ms=20.0),
        item("peer", item=1),
        key("peer", item=2, ms=1.0),
        item("peer", item=2),
    ]
    stopped = [*ours, key(item=2, ms=1000.0)]
    found = {comparison.what: comparison for comparison in compare(stopped, theirs, "peer")}
    times = found["all answers"]
    assert times.items == 2
    assert times.gain == pytest.approx((40 / 20 + 20 / 40) / 2)
    assert "first token in the engine" not in found  # nobody told
    saved = found["removed characters that suggestions brought back"]
    assert (saved.gain, saved.items) == (0.0, 2)
    assert found["on screen within 100 ms"].gain == 0.0


@pytest.mark.parametrize(
    ("chars", "group"),
    [
        (0, "under 2k"),
        (1999, "under 2k"),
        (2000, "2k to 8k"),
        (31_999, "8k to 32k"),
        (32_000, "32k and more"),
    ],
)
def test_sizes(chars: int, group: str) -> None:
    assert size_group(chars) == group


def test_breakdowns_have_each_group_and_system() -> None:
    keys = [
        key(kind="line", action="newline"),
        key(kind="body", action="type", along=True),
        key("peer", kind="body", language="zig"),
    ]
    found, _, _ = tables(keys)
    rows = {table.title: [row[:3] for row in table.rows] for table in found}
    assert rows["Keys by kind of piece"] == [
        ("body", "draftline", "1"),
        ("body", "peer", "1"),
        ("line", "draftline", "1"),
    ]
    assert rows["Keys by language"] == [("python", "draftline", "2"), ("zig", "peer", "1")]
    assert rows["Keys by action"] == [
        ("type", "peer", "1"),
        ("type, along a suggestion", "draftline", "1"),
        ("newline", "draftline", "1"),
    ]


def test_a_document_that_was_not_restored_is_a_warning() -> None:
    assert tables([key(), item()])[2] == []
    (warning,) = tables([key(), item(), item(item=1, restored=False)])[2]
    assert "draftline: 1 of 2" in warning and "file1.py" in warning
