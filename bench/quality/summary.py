"""Figures of answers, over the items of a set."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bench.quality.intervals import Interval, difference_interval, mean_interval
from bench.records import Answer

# In the name of a variant, before what it leaves out of the variant "all" of the same order.
WITHOUT = "without:"

Metric = Literal["exact", "similarity", "passed", "valid"]


class Way(NamedTuple):
    """What is compared: a system in one variant on one set."""

    system: str
    set: str
    variant: str
    numerics: str


@dataclass(frozen=True)
class Row:
    """One way's answers.

    Attributes:
        n: answers.
        exact, passed, valid: shares 0 .. 1; similarity: mean. ``passed`` is pass@1 over the answers whose
            tests were run, None if none were.
        ms: median.
        first_line: share, None where it was not judged; prompt_tokens: mean, None where not told.
    """

    way: Way
    n: int
    exact: Interval
    similarity: Interval
    passed: Interval | None
    valid: Interval
    ms: float
    first_line: Interval | None = None
    prompt_tokens: float | None = None


def summarise(answers: Iterable[Answer]) -> list[Row]:
    """One row for each way, in order of appearance. The last answer of an item counts."""
    return [_row(way, list(items.values())) for way, items in _by_way(answers).items()]


def paired(answers: Iterable[Answer], metric: Metric, first: Way, second: Way) -> Interval | None:
    """The mean of ``first - second`` over the items that both answered, None if there are none.

    For "passed", items whose tests were not run are left out.
    """
    ways = _by_way(answers)
    ones, others = ways.get(first, {}), ways.get(second, {})
    values = [(_value(ones[item], metric), _value(others[item], metric)) for item in ones if item in others]
    known = [(one, other) for one, other in values if one is not None and other is not None]
    if not known:
        return None
    return difference_interval([one for one, _ in known], [other for _, other in known])


def _by_way(answers: Iterable[Answer]) -> dict[Way, dict[str, Answer]]:
    ways: dict[Way, dict[str, Answer]] = {}
    for answer in answers:
        way = Way(answer.system, answer.set, answer.variant, answer.numerics)
        ways.setdefault(way, {})[answer.item] = answer
    return ways


def _row(way: Way, answers: list[Answer]) -> Row:
    first = [float(answer.first_line) for answer in answers if answer.first_line is not None]
    prompts = [answer.prompt_tokens for answer in answers if answer.prompt_tokens is not None]
    tested = [float(answer.passed) for answer in answers if answer.passed is not None]
    return Row(
        way=way,
        n=len(answers),
        exact=mean_interval([answer.exact for answer in answers]),
        similarity=mean_interval([answer.similarity for answer in answers]),
        passed=mean_interval(tested) if tested else None,
        valid=mean_interval([answer.valid for answer in answers]),
        ms=statistics.median(answer.ms for answer in answers),
        first_line=mean_interval(first) if first else None,
        prompt_tokens=statistics.mean(prompts) if prompts else None,
    )


def _value(answer: Answer, metric: Metric) -> float | None:
    value: float | None = getattr(answer, metric)
    return None if value is None else float(value)
