"""What counts as right, as similar and as Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quality.datasets import load_edits, load_random_span, load_single_line
from bench.quality.judge import is_exact, judge, levenshtein, parses, similarity
from tests.unit.bench.quality_tasks import write_tasks


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("kitten", "sitting", 3),
        ("intention", "execution", 5),
        ("flaw", "lawn", 2),
        ("ab", "ba", 2),
        ("aéb", "aeb", 1),
    ],
)
def test_known_distances(first: str, second: str, distance: int) -> None:
    assert levenshtein(first, second) == levenshtein(second, first) == distance


@settings(deadline=None)
@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_distances_are_those_of_the_definition(first: str, second: str) -> None:
    def slow(one: str, other: str) -> int:
        if not one or not other:
            return len(one) + len(other)
        if one[0] == other[0]:
            return slow(one[1:], other[1:])
        return 1 + min(slow(one[1:], other), slow(one, other[1:]), slow(one[1:], other[1:]))

    assert levenshtein(first, second) == slow(first, second)


def test_similarity_is_relative_to_the_longer_text() -> None:
    assert similarity("", "") == 1.0
    assert similarity("abcd", "ab") == 0.5
    assert similarity("ab", "xy") == 0.0


def test_what_is_exact_is_wholly_similar(tmp_path: Path) -> None:
    task = load_single_line(write_tasks(tmp_path))[0]
    judgement = judge(task, f"{task.middle}  ", tests=False)
    assert (judgement.exact, judgement.similarity) == (True, 1.0)


def test_only_blanks_at_the_ends_are_forgiven() -> None:
    assert is_exact("  x = 1\n", "x = 1")
    assert not is_exact("x  = 1", "x = 1")


def test_what_parses() -> None:
    assert parses("def f():\n    return 1\n")
    assert not parses("def f():\nreturn 1\n")
    assert not parses("x = '\0'")
    assert not parses("(" * 100_000)


def test_the_canonical_answers_pass(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    for gap in (*load_single_line(tmp_path), *load_random_span(tmp_path)):
        judgement = judge(gap, gap.middle, tests=True)
        assert (judgement.exact, judgement.similarity, judgement.passed) == (True, 1.0, True)
        assert (judgement.failure, judgement.valid) == ("", True)
    for edit in load_edits(tmp_path):
        judgement = judge(edit, edit.solution, tests=True)
        assert (judgement.exact, judgement.passed, judgement.valid) == (True, True, True)


def test_another_right_answer_passes_without_being_exact(tmp_path: Path) -> None:
    task = load_single_line(write_tasks(tmp_path))[0]
    judgement = judge(task, "    result = 2 * n", tests=True)
    assert (judgement.exact, judgement.passed) == (False, True)
    assert 0 < judgement.similarity < 1


def test_wrong_answers_fail_for_their_own_reasons(tmp_path: Path) -> None:
    task = load_single_line(write_tasks(tmp_path))[0]
    for text, failure, valid in (
        ("    result = n", "AssertionError", True),
        ("    result = m", "NameError", True),
        ("    result = (n", "syntax", False),
        ("", "NameError", True),
        ("    return 4", "", True),
    ):
        judgement = judge(task, text, tests=True)
        assert (judgement.failure, judgement.valid) == (failure, valid), text
        assert judgement.passed is (failure == "")
        assert not judgement.exact


def test_an_unedited_text_fails(tmp_path: Path) -> None:
    for task in load_edits(write_tasks(tmp_path)):
        judgement = judge(task, task.code, tests=True)
        assert (judgement.passed, judgement.failure, judgement.valid) == (False, "AssertionError", True)


def test_without_tests_nothing_runs(tmp_path: Path) -> None:
    task = load_single_line(write_tasks(tmp_path))[0]
    witness = tmp_path / "ran"
    text = f"    result = open({str(witness)!r}, 'w')"
    judgement = judge(task, text, tests=False)
    assert (judgement.passed, judgement.failure, judgement.valid) == (None, "", True)
    assert not witness.exists()
    judge(task, text, tests=True)
    assert witness.exists()
