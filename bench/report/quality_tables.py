"""Tables of the quality bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.quality.intervals import Interval
from bench.quality.summary import WITHOUT, Row, Way, summarise
from bench.records import Answer, Record
from bench.report.edit_tables import edit_tables
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, count, number, percent
from bench.report.pairs import Comparison, comparison_table, differences, gain_of, ratios
from bench.report.systems import OURS, is_ours

_JUDGED: tuple[tuple[str, Callable[[Answer], float | None]], ...] = (
    ("exact", lambda answer: float(answer.exact)),
    ("first line", lambda answer: None if answer.first_line is None else float(answer.first_line)),
    ("similarity", lambda answer: answer.similarity),
    ("tests passed", lambda answer: None if answer.passed is None else float(answer.passed)),
    ("parses", lambda answer: float(answer.valid)),
)

# What the table of filters tells; the others say nothing about them.
_WORTH = frozenset({"exact", "tests passed", "parses"})


def tables(records: Sequence[Record]) -> tuple[list[Table], list[Comparison]]:
    """Tables and comparisons with other systems; empty without answers."""
    answers = [record for record in records if isinstance(record, Answer)]
    if not answers:
        return [], []
    ablated = [answer for answer in answers if _left_out(answer.variant)]
    answers_of_all, answers = answers, [answer for answer in answers if not _left_out(answer.variant)]
    rows = summarise(answers)
    sets = list(dict.fromkeys(row.way.set for row in rows))
    rows.sort(key=lambda row: (sets.index(row.way.set), row.way.system != OURS, not is_ours(row.way.system)))
    comparisons = [
        comparison for set_ in sets for comparison in _compare(answers, [row.way for row in rows], set_)
    ]
    found = [_answers(rows)]
    if comparisons:
        found.append(
            comparison_table(
                "Answers, item by item",
                "Draftline's first variant with every other one. Shares: the mean over the items of the"
                " differences in percentage points (pp); above 0 Draftline is better. Time: the median over"
                " the items of the ratios; above 1x it is better.",
                comparisons,
            )
        )
    found += edit_tables(answers)
    if ablated:
        found.append(_worth(answers_of_all, sets))
    return found, comparisons


def _left_out(variant: str) -> str:
    """The name of what a variant leaves out, "" if it is no such variant."""
    return variant.partition(f"/{WITHOUT}")[2]


def _worth(answers: Sequence[Answer], sets: Sequence[str]) -> Table:
    """What each filter and stop rule is worth: the answers with and without it, item by item."""
    ways = list(dict.fromkeys(Way(a.system, a.set, a.variant, a.numerics) for a in answers))
    several = len({way.numerics for way in ways if _left_out(way.variant)}) > 1
    rows: list[tuple[str, ...]] = []
    for way in sorted(ways, key=lambda way: sets.index(way.set)):
        name = _left_out(way.variant)
        if not name:
            continue
        whole = way._replace(variant=f"{way.variant.partition('/')[0]}/all")
        own, without = _items(answers, whole), _items(answers, way)
        both = own.keys() & without.keys()
        if not both:
            continue
        changed = sum(own[item].text != without[item].text for item in both)
        gains = [_gain(judge, own, without) for what, judge in _JUDGED if what in _WORTH]
        label = f"{name} ({way.numerics})" if several else name
        rows.append((way.set, label, f"{changed} of {len(both)}", *gains))
    return Table(
        "What each stop and filter is worth",
        "Draftline's answers against its answers without one filter or stop rule, from the same tokens of the"
        " model: how many answers that changes, and the mean over the items of the differences in percentage"
        " points (pp) with 95 % intervals; above 0 the rule makes answers better.",
        ("set", "left out", "answers changed", "exact ↑", "tests passed (pass@1) ↑", "parses ↑"),
        tuple(rows),
        words=2,
    )


def _gain(judge: Callable[[Answer], float | None], own: dict[str, Answer], without: dict[str, Answer]) -> str:
    mine, others = (
        {item: known for item, answer in of.items() if (known := judge(answer)) is not None}
        for of in (own, without)
    )
    found = differences("", "", "", mine, others)
    if found is None:
        return UNKNOWN
    gain, interval = gain_of(found)
    return f"{gain} ({interval})"


def _answers(rows: Sequence[Row]) -> Table:
    # Only the gaps of real files have these; other results keep their table.
    by_text = any(row.first_line is not None for row in rows)
    columns = (
        "set",
        "system",
        "variant",
        "numerics",
        "answers",
        "exact ↑",
        "similarity ↑",
        "tests passed (pass@1) ↑",
        "parses ↑",
        "median, ms ↓",
        *(("first line ↑", "prompt, tokens ↓") if by_text else ()),
    )
    return Table(
        "Answers by set, system and variant",
        "Means with 95 % intervals over the items. Exact: the same text as the canonical answer; similarity:"
        " 1 - edit distance / longer length; parses: the completed file has no syntax error."
        + (" In the set repo the similarity is of the first lines." if by_text else ""),
        columns,
        tuple(
            (
                row.way.set,
                row.way.system,
                row.way.variant,
                row.way.numerics or UNKNOWN,
                count(row.n),
                *(_mean(found) for found in (row.exact, row.similarity, row.passed, row.valid)),
                number(row.ms),
                *((_mean(row.first_line), number(row.prompt_tokens)) if by_text else ()),
            )
            for row in rows
        ),
        words=4,
    )


def _mean(found: Interval | None) -> str:
    if found is None:
        return UNKNOWN
    return f"{percent(found.mean)} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def _compare(answers: Sequence[Answer], ways: Sequence[Way], set_: str) -> list[Comparison]:
    of_set = [way for way in ways if way.set == set_]
    ours = next((way for way in of_set if is_ours(way.system)), None)
    if ours is None:
        return []
    several = len({way.numerics for way in of_set if is_ours(way.system)}) > 1
    own = _items(answers, ours)
    found: list[Comparison | None] = []
    for way in of_set:
        if way == ours:
            continue
        words = [way.system, way.variant, way.numerics if several and is_ours(way.system) else ""]
        other = " ".join(filter(None, words))
        theirs = _items(answers, way)
        for what, judge in _JUDGED:
            mine, others = (
                {item: known for item, answer in of.items() if (known := judge(answer)) is not None}
                for of in (own, theirs)
            )
            found.append(differences(what, set_, other, mine, others))
        mine, others = ({item: answer.ms for item, answer in of.items()} for of in (own, theirs))
        found.append(ratios("time to the answer", set_, other, "ms", mine, others))
    return [comparison for comparison in found if comparison is not None]


def _items(answers: Sequence[Answer], way: Way) -> dict[str, Answer]:
    """The answers of one way; the last one of an item counts, as in the summary."""
    return {
        answer.item: answer
        for answer in answers
        if way == Way(answer.system, answer.set, answer.variant, answer.numerics)
    }
