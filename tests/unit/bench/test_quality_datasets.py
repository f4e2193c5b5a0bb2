"""Tasks are read as they are, and a wrong file is named with what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.quality.datasets import (
    EDITS,
    RANDOM_SPAN,
    SINGLE_LINE,
    BadData,
    load_edits,
    load_random_span,
    load_single_line,
    subset,
)
from tests.unit.bench.quality_tasks import EDIT, LINE, METHOD, SPAN, write_lines, write_tasks


def test_a_missing_line_leaves_its_end_in_the_document(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    first, second = load_single_line(tmp_path)
    assert (first.id, second.id) == ("line/0", "line/1")
    assert first.middle == "    result = n + n"
    assert first.suffix == "\n    return result\n"
    assert first.whole(first.middle) == LINE["prompt"] + LINE["canonical_solution"] + LINE["suffix"]


def test_a_missing_span_is_left_alone(tmp_path: Path) -> None:
    write_lines(tmp_path / RANDOM_SPAN, {**SPAN, "canonical_solution": " * 2\n", "suffix": "x = 1\n"})
    (task,) = load_random_span(tmp_path)
    assert (task.prompt, task.middle, task.suffix) == (SPAN["prompt"], " * 2\n", "x = 1\n")


def test_an_edit_stands_in_its_context(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    plain, method = load_edits(tmp_path)
    assert plain.program("CODE").startswith("CODE\n")
    assert method.program(method.solution).startswith("class Counter:\n    value = 1\n    def next(self):\n")
    assert plain.program("CODE").endswith("\ncheck()\n")


def test_unpacked_files_and_edits_without_a_context_will_do(tmp_path: Path) -> None:
    write_lines(tmp_path / EDITS, {key: value for key, value in EDIT.items() if key != "context"})
    assert len(load_edits(tmp_path)) == 1
    (tmp_path / EDITS).unlink()
    (tmp_path / EDITS.removesuffix(".gz")).write_text('{"task_id": "x"}\n', encoding="utf-8")
    with pytest.raises(BadData, match="no text in instruction"):
        load_edits(tmp_path)


def test_a_missing_file_is_named_with_all_three_and_their_sources(tmp_path: Path) -> None:
    with pytest.raises(BadData) as caught:
        load_single_line(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / SINGLE_LINE} does not exist.")
    for wanted in (SINGLE_LINE, RANDOM_SPAN, EDITS, "openai/human-eval-infilling", "qishenghu/InstructCoder"):
        assert wanted in message
    for field in (*LINE, *EDIT):
        assert field in message


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], "has no tasks"),
        ([[1]], "line 1, is no JSON object"),
        ([LINE, {**LINE, "task_id": "b", "suffix": None}], "line 2, has no text in suffix"),
        ([LINE, LINE], "line/0 comes twice"),
        ([{**LINE, "test": "assert True"}], "defines no check"),
    ],
)
def test_wrong_tasks_are_named(tmp_path: Path, objects: list[object], words: str) -> None:
    write_lines(tmp_path / SINGLE_LINE, *objects)
    with pytest.raises(BadData, match=words):
        load_single_line(tmp_path)


@pytest.mark.parametrize("content", [b"no gzip", b"\x1f\x8b\x08"])
def test_a_damaged_file_is_an_error_of_its_own(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SINGLE_LINE).write_bytes(content)
    with pytest.raises(BadData, match="cannot be read"):
        load_single_line(tmp_path)


def test_a_line_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / SINGLE_LINE.removesuffix(".gz")).write_text("{", encoding="utf-8")
    with pytest.raises(BadData, match="line 1, is not JSON"):
        load_single_line(tmp_path)


def test_a_subset_is_the_same_for_the_same_seed_and_the_beginning_of_a_larger_one() -> None:
    tasks = [f"task {number}" for number in range(50)]
    ten = subset(tasks, 10, seed=3)
    assert ten == subset(tasks, 10, seed=3) == subset(tasks, 20, seed=3)[:10]
    assert len(set(ten)) == 10
    assert ten != subset(tasks, 10, seed=4)
    assert sorted(subset(tasks, 99, seed=0)) == sorted(tasks)


def test_the_contexts_of_methods_are_read(tmp_path: Path) -> None:
    write_lines(tmp_path / EDITS, METHOD)
    (task,) = load_edits(tmp_path)
    assert task.context == METHOD["context"]
