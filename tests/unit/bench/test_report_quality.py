"""Tables of the quality and exactness benches."""

from __future__ import annotations

import pytest

from bench.report import exactness_tables, quality_tables
from bench.report.numbers import UNKNOWN
from tests.unit.bench.made_up_records import answer, compared


def test_answers() -> None:
    records = [
        answer("peer", "0", variant="raw", exact=False, similarity=0.5),
        answer(item="0", passed=None),
        answer(item="1", exact=False, similarity=0.5, passed=False, ms=300.0),
    ]
    (table,) = [table for table in quality_tables.tables(records)[0] if "by set" in table.title]
    ours, theirs = table.rows
    assert ours[:5] == ("single-line", "draftline", "first", "int8", "2")
    assert [cell.split(" (")[0] for cell in ours[5:9]] == ["50.0 %", "75.0 %", "0 %", "100 %"]
    assert ours[9] == "200"
    assert theirs[1:3] == ("peer", "raw")


def test_pairs_of_the_same_item() -> None:
    records = [
        answer(item="0", exact=False),
        answer(item="1", passed=None),
        answer(item="2"),
        answer(item="0", variant="second", exact=True),
        answer("peer", "0", exact=True, ms=50.0),
        answer("peer", "1", passed=False, ms=50.0),
        answer("peer", "9", exact=False, ms=1.0),
        answer("peer", "0", set="edit"),  # Draftline was not asked there
    ]
    _, found = quality_tables.tables(records)
    by = {(comparison.other, comparison.what): comparison for comparison in found}
    assert {other for other, _ in by} == {"draftline second", "peer first"}
    exact = by["peer first", "exact"]
    assert (exact.gain, exact.items, exact.behind) == (-0.5, 2, True)
    assert by["peer first", "tests passed"].items == 1
    assert by["peer first", "time to the answer"].gain == pytest.approx(0.5)
    assert by["draftline second", "exact"].gain == -1.0
    assert not by["draftline second", "exact"].behind


def test_what_each_filter_is_worth() -> None:
    records = [
        answer(item="0", variant="spm/all"),
        answer(item="1", variant="spm/all", text="b"),
        answer(item="0", variant="spm/without:blank"),
        answer(item="1", variant="spm/without:blank", text="c", exact=False, passed=False),
        answer(item="0", variant="spm/without:scope", passed=None),
        answer("peer", "0", exact=False),
    ]
    found, comparisons = quality_tables.tables(records)
    (worth,) = [table for table in found if "worth" in table.title]
    blank, scope = worth.rows
    assert blank[:3] == ("single-line", "blank", "1 of 2")
    assert blank[3].startswith("+50.0 pp (") and blank[4].startswith("+50.0 pp (")
    assert scope[1:3] == ("scope", "0 of 1") and scope[4] == "–"
    (answers,) = [table for table in found if "by set" in table.title]
    assert [row[2] for row in answers.rows] == ["spm/all", "first"]
    assert {comparison.other for comparison in comparisons} == {"peer first"}


def test_numerics_are_told_apart() -> None:
    _, found = quality_tables.tables([answer(), answer(numerics="bf16")])
    assert {comparison.other for comparison in found} == {"draftline first bf16"}


def test_exactness() -> None:
    assert exactness_tables.tables([]) == []
    (table,) = exactness_tables.tables(
        [
            compared("ngram", same_logits=False),
            compared("ngram", same_tokens=False, cached_tokens=0),
            compared("ngram", chunk=16),
            compared("auto", drafted=1, accepted=1),
        ]
    )
    assert table.rows == (
        ("ngram", "3", "33.3 %", "24", "15", "9", "2"),
        ("auto", "1", "100 %", "1", "1", "0", "1"),
        ("all", "4", "50.0 %", "25", "16", "9", "3"),
    )
    assert "16, 128 tokens" in table.note


def test_edits_parsed_against_raw() -> None:
    facts = {"set": "edit", "forwards": 2, "decode_ms": 50.0, "tokens": 10}
    records = [
        answer(item="0", variant="raw, none", **facts),
        answer(item="1", variant="raw, none", **facts),
        answer(item="0", variant="parsed, auto", first_hunk_ms=30.0, shown_behind=1, **facts),
        answer(item="1", variant="parsed, auto", text="other", passed=False, shown_behind=2, **facts),
        answer("peer", "0", variant="raw, plain", **{**facts, "forwards": None}),
    ]
    found, _ = quality_tables.tables(records)
    (costs,) = [table for table in found if "costs" in table.title]
    assert [row[4:] for row in costs.rows] == [
        ("5.00", "200", UNKNOWN, UNKNOWN, "100"),
        ("5.00", "200", "30.0", "50.0 %", "100"),
        (UNKNOWN, "200", UNKNOWN, UNKNOWN, "100"),
    ]
    (losses,) = [table for table in found if "loses" in table.title]
    assert losses.rows == (("draftline: parsed, auto", "int8", "2", "1", "1", "0"),)


def test_results_without_these_figures_have_no_such_tables() -> None:
    found, _ = quality_tables.tables([answer(set="edit", variant="chat, auto")])
    assert not [table for table in found if "edit" in table.title]
