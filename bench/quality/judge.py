"""How an answer compares with the canonical one."""

from __future__ import annotations

import ast
import textwrap
import warnings
from dataclasses import dataclass

import numpy as np

from bench.quality.datasets import EditTask, InfillTask
from bench.quality.repo_gaps import RepoTask
from bench.quality.sandbox import run_program
from lsp_server.documents.syntax import parser_for


@dataclass(frozen=True)
class Judgement:
    """The fields of the same names in ``bench.records.Answer``.

    Blanks at both ends count neither for ``exact`` nor for ``similarity``, so what is exact has similarity 1.
    For a `RepoTask` ``similarity`` compares the first lines.
    """

    exact: bool
    similarity: float
    passed: bool | None
    failure: str
    valid: bool
    first_line: bool | None = None


def judge(task: InfillTask | EditTask, text: str, *, tests: bool) -> Judgement:
    """Judge ``text`` as the answer to a task; ``tests``: also run the task's own."""
    if isinstance(task, RepoTask):
        return _judge_by_text(task, text)
    if isinstance(task, InfillTask):
        canonical, valid = task.middle, parses(task.whole(text))
    else:
        # The code may be a method, indented as in its class.
        canonical, valid = task.solution, parses(textwrap.dedent(text))
    failure = run_program(task.program(text)) if tests else ""
    return Judgement(
        exact=is_exact(text, canonical),
        similarity=similarity(text.strip(), canonical.strip()),
        passed=not failure if tests else None,
        failure=failure,
        valid=valid,
    )


def _judge_by_text(task: RepoTask, text: str) -> Judgement:
    first, canonical = (whole.strip().split("\n")[0].strip() for whole in (text, task.middle))
    return Judgement(
        exact=is_exact(text, task.middle),
        similarity=similarity(first, canonical),
        passed=None,
        failure="",
        valid=not has_errors(task.whole(text), task.language),
        first_line=first == canonical,
    )


def has_errors(source: str, language: str) -> bool:
    """Whether a tree-sitter grammar finds a syntax error; never for a language without one."""
    parser = parser_for(language)
    return parser is not None and parser.parse(source.encode("utf-8", "replace")).root_node.has_error


def is_exact(text: str, canonical: str) -> bool:
    """Whether both are the same, blanks at both ends aside."""
    return text.strip() == canonical.strip()


def similarity(text: str, canonical: str) -> float:
    """1 - Levenshtein distance / longer length, in characters; 1.0 for two empty texts."""
    longer = max(len(text), len(canonical))
    return 1.0 - levenshtein(text, canonical) / longer if longer else 1.0


def levenshtein(first: str, second: str) -> int:
    """Fewest insertions, deletions and replacements of characters (Wagner and Fischer 1974, by rows)."""
    codes = np.array([ord(character) for character in second], dtype=np.int64)
    columns = np.arange(len(second) + 1)
    row = columns.copy()
    for number, character in enumerate(first, 1):
        best = np.empty_like(row)
        best[0] = number
        best[1:] = np.minimum(row[1:] + 1, row[:-1] + (codes != ord(character)))
        # An insertion costs 1 for each column that a value is carried to the right.
        row = np.minimum.accumulate(best - columns) + columns
    return int(row[-1])


def parses(source: str) -> bool:
    """Whether Python source has no syntax error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # e.g. about escapes, which would go to the terminal
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a null character
        return False
    return True
