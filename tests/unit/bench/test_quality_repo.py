"""The set of gaps in real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.journal import load
from bench.quality.judge import judge
from bench.quality.repo_gaps import NoGaps, RepoContext, RepoTask, load_repo
from bench.records import Answer
from bench.report import quality_tables
from lsp_server.cli import main
from lsp_server.completion.options import CompletionOptions
from lsp_server.context.related import FILE_SOURCES

HELPERS = '"""Helpers of the shop, one for each thing to count."""\n\n\n' + "".join(
    f'def count_{n}(basket, discount):\n    """Counts thing {n}."""\n    return basket + discount + {n}\n\n\n'
    for n in range(20)
)
SHOP = "from helpers import *\n\n\n" + "".join(
    f"def sell_{n}(basket):\n    discount = basket - {n}\n    total = count_{n}(basket, discount)\n"
    f"    print(basket, {n})\n    return total\n\n\n"
    for n in range(20)
)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "helpers.py").write_text(HELPERS)
    (root / "shop.py").write_text(SHOP)
    (root / "unrelated.py").write_text("def alone(value):\n    return value\n" * 30)
    return root


def test_gaps_use_names_of_other_files(repo: Path) -> None:
    tasks = load_repo(repo, 4, 0)
    assert tasks == load_repo(repo, 4, 0)
    assert len(tasks) == len({task.id for task in tasks}) == 4
    for task in tasks:
        assert task.path.name == "shop.py"
        assert "count_" in task.middle and "\n" not in task.middle
        assert task.whole(task.middle) == SHOP
        assert repo.resolve() / "helpers.py" in {path for path, _ in task.opened}
    assert {task.id.rpartition(":")[2] for task in tasks} == {"line", "rest-of-line"}


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoGaps):
        load_repo(tmp_path, 4, 0)


@pytest.mark.parametrize("source", ["definitions", "tabs", "recent"])
def test_context_never_has_the_gap_itself(source: str, repo: Path) -> None:
    context, found = RepoContext(), []
    for task in load_repo(repo, 4, 0):
        options = CompletionOptions(context_sources=frozenset({source}))
        related = context.gather(task, options)
        assert related == context.gather(task, options)
        found += [file for file in related.files if file.path == "helpers.py"]
        assert all(file.path != "shop.py" or task.middle not in file.text for file in related.files)
    assert source in FILE_SOURCES and found
    assert RepoContext().gather(load_repo(repo, 1, 0)[0], CompletionOptions()).files == ()


@pytest.mark.parametrize(
    ("text", "exact", "first_line", "valid"),
    [
        ("total = count_0(basket, discount)", True, True, True),
        ("total = count_0(basket, discount)\n    return 1", False, True, True),
        ("total = count_0(", False, False, False),
    ],
)
def test_answers_are_judged_by_their_text(
    text: str, exact: bool, first_line: bool, valid: bool, repo: Path
) -> None:
    before, middle, after = SHOP.partition("total = count_0(basket, discount)")
    task = RepoTask("x", before, after, middle, "", "", repo, repo / "shop.py", "python", (), ())
    found = judge(task, text, tests=False)
    assert (found.exact, found.first_line, found.valid) == (exact, first_line, valid)
    assert (found.similarity == 1.0) is first_line
    assert found.passed is None


def test_every_variant_answers_the_same_gaps(
    looping_model: Path, repo: Path, tmp_path: Path, tiny_home: Path
) -> None:
    out = tmp_path / "out.jsonl"
    names = ["spm/all", "+scope", "+imports", "+imports+scope", "+definitions", "+tabs", "+all"]
    arguments = ["--sets", "repo", "--repo", str(repo), "--count", "2", "--model", str(looping_model)]
    more = ["--variants", ",".join(names), "--max-new-tokens", "8", "--out", str(out)]
    assert main(["bench", "quality", *arguments, *more]) == 0
    (run,) = load([out])
    answers = [record for record in run.records if isinstance(record, Answer)]
    assert {(each.item, each.variant) for each in answers} == {
        (item, name) for item in {each.item for each in answers} for name in names
    }
    assert len(answers) == 2 * len(names)
    assert all(each.prompt_tokens and each.first_line is not None and each.passed is None for each in answers)
    tables, comparisons = quality_tables.tables(answers)
    assert tables[0].columns[-2:] == ("first line ↑", "prompt, tokens ↓")
    assert {comparison.what for comparison in comparisons} >= {"exact", "first line", "similarity"}


def test_wrong_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "quality", "--sets", "repo", "--repo", str(tmp_path / "nowhere")]) == 2
    assert "is not a directory" in capsys.readouterr().err
