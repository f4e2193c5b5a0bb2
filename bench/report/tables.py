"""The report of some runs as Markdown: what was measured on what, tables, and where Draftline is behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.journal import RunResults
from bench.report import (
    breakdown,
    exactness_tables,
    latency_tables,
    numerics_tables,
    quality_tables,
    roofline_tables,
    soak_tables,
    speculation_tables,
)
from bench.report.layout import LEGEND, Table
from bench.report.pairs import Comparison, both, gain_of
from bench.report.systems import is_ours


@dataclass(frozen=True)
class _Section:
    """One run's part of the report."""

    title: str
    tables: list[Table]
    comparisons: list[Comparison]
    warnings: list[str]


def markdown(runs: Sequence[RunResults]) -> str:
    """The report; the same text for the same runs. Kinds of records that a run lacks have no table."""
    parts = [LEGEND] if runs else []
    sections = [_section(number, results) for number, results in enumerate(runs, 1)]
    for results, section in zip(runs, sections, strict=True):
        parts += [f"## {section.title}", _facts(results)]
        parts += [f"**Warning:** {warning}" for warning in section.warnings]
        parts += [table.markdown() for table in section.tables]
        if not section.tables:
            parts.append("Nothing was measured.")
    parts += _behind(sections)
    return "\n\n".join(parts) + "\n"


def title(number: int, results: RunResults) -> str:
    """The heading of a run; ``number`` counts the runs of the report from 1."""
    return f"{number}. {results.run.bench}, {results.run.date}"


def _section(number: int, results: RunResults) -> _Section:
    keys, key_comparisons, warnings = latency_tables.tables(results.records)
    calls, call_comparisons = speculation_tables.tables(results.records)
    limits, limit_comparisons = roofline_tables.tables(results.records)
    answers, answer_comparisons = quality_tables.tables(results.records)
    if results.run.quick:
        warnings = ["a quick run: it shows that everything works; its figures rest on little.", *warnings]
    return _Section(
        title(number, results),
        [
            *keys,
            *calls,
            *limits,
            *breakdown.tables(results.records),
            *numerics_tables.tables(results.records),
            *answers,
            *exactness_tables.tables(results.records),
            *soak_tables.tables(results.records),
        ],
        [*key_comparisons, *call_comparisons, *limit_comparisons, *answer_comparisons],
        warnings,
    )


def _facts(results: RunResults) -> str:
    run = results.run
    lines = [f"- command: `{run.command}`", f"- machine: {_words(run.machine)}"]
    if run.options:
        lines.append(f"- options: {_words(run.options)}")
    lines += [f"- {name}: {_words(facts)}" for name, facts in run.systems.items()]
    return "\n".join(lines)


def _words(facts: Mapping[str, object]) -> str:
    """Names and values; what is unknown is left out."""
    known = ((name, value) for name, value in facts.items() if value not in (None, "", [], {}))
    return "; ".join(f"{name} {_value(value)}" for name, value in known) or "not known"


def _value(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False)


def _behind(sections: Iterable[_Section]) -> list[str]:
    """The comparisons in which a peer is better, the largest lag first; nothing if there are no peers."""
    found = [
        (section.title, comparison)
        for section in sections
        for comparison in section.comparisons
        if not is_ours(comparison.other)
    ]
    if not found:
        return []
    behind = [(where, comparison) for where, comparison in found if comparison.behind]
    behind.sort(key=lambda pair: -pair[1].factor)
    heading = "## Where Draftline is behind"
    if not behind:
        return [heading, f"In none of the {len(found)} comparisons with other systems above."]
    note = (
        f"In {len(behind)} of the {len(found)} comparisons with other systems above, the largest lag first."
        " Not clear: the interval includes no difference, or there is none."
    )
    return [heading, note, "\n".join(f"- {_sentence(where, item)}" for where, item in behind)]


def _sentence(where: str, item: Comparison) -> str:
    on = f" on {item.group}" if item.group else ""
    mine, others = both(item)
    gain, interval = gain_of(item)
    sure = "" if item.low is None else f", interval {interval}"
    unclear = "" if item.clear else "; not clear"
    return f"{where}: {item.what}{on}: {mine}, {item.other} {others} ({gain}{sure}{unclear})"
