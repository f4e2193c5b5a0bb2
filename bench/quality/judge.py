"""How an answer compares with the canonical one."""

from __future__ import annotations

import ast
import textwrap
import warnings
from dataclasses import dataclass

import numpy as np

from bench.quality.datasets import EditTask, InfillTask
from bench.quality.sandbox import run_program


@dataclass(frozen=True)
class Judgement:
    """The fields of the same names in ``bench.records.Answer``.

    Blanks at both ends count neither for ``exact`` nor for ``similarity``, so what is exact has similarity 1.
    """

    exact: bool
    similarity: float
    passed: bool | None
    failure: str
    valid: bool


def judge(task: InfillTask | EditTask, text: str, *, tests: bool) -> Judgement:
    """Judge ``text`` as the answer to a task; ``tests``: also run the task's own."""
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
