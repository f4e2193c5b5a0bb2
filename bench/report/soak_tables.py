"""Tables of the soak bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.records import Record, Sample
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, count, megabytes, number, quotient
from bench.soak.verdict import Change, Summary, summarise


def tables(records: Sequence[Record]) -> list[Table]:
    """What was sent, and what changed; empty without samples."""
    summary = summarise(record for record in records if isinstance(record, Sample))
    return [] if summary is None else [_requests(summary), _changes(summary)]


def _requests(summary: Summary) -> Table:
    last = summary.last
    return Table(
        "Soak: requests",
        f"Over {number(last.seconds / 60)} minutes. Verdict: {'; '.join(summary.problems) or 'passed'}.",
        (
            "requests",
            "answered",
            "cancelled",
            "superseded",
            "refused ↓",
            "failed ↓",
            "most private memory, MB ↓",
            "promised, MB",
        ),
        (
            (
                count(last.requests),
                count(last.answered),
                count(last.cancelled),
                count(last.superseded),
                count(last.refused),
                count(last.failed),
                megabytes(summary.most_private),
                megabytes(last.promised_bytes),
            ),
        ),
        words=0,
    )


def _changes(summary: Summary) -> Table:
    rows = (
        _row("private memory, MB", summary.private, megabytes),
        _row("threads (most)", summary.threads, number),
        _row("threads of the interpreter (most)", summary.python_threads, number),
        _row("open files (most)", summary.files, number),
        _row("Python objects", summary.objects, number),
        _row("time to the answer, ms", summary.ms, number),
    )
    return Table(
        "Soak: first and last fifth",
        "Medians over a fifth of the samples, or the most of them; the warm-up before them is left out.",
        ("figure", "first fifth", "last fifth", "change ↓"),
        rows,
    )


def _row(name: str, change: Change | None, shown: Callable[[float | None], str]) -> tuple[str, ...]:
    if change is None:
        return (name, UNKNOWN, UNKNOWN, UNKNOWN)
    share = quotient(change.grown, change.first)
    text = UNKNOWN if share is None else f"{100 * share:+.1f} %"
    return (name, shown(change.first), shown(change.last), "0 %" if not change.grown else text)
