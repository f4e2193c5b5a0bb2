"""The table of the exactness bench."""

from __future__ import annotations

from collections.abc import Sequence

from bench.records import Compared, Record
from bench.report.layout import Table
from bench.report.numbers import count, percent, share


def tables(records: Sequence[Record]) -> list[Table]:
    """One row for each drafter and one for all; empty without comparisons."""
    compared = [record for record in records if isinstance(record, Compared)]
    if not compared:
        return []
    groups: dict[str, list[Compared]] = {}
    for record in compared:
        groups.setdefault(record.draft, []).append(record)
    columns = (
        "drafter",
        "answers",
        "same tokens and logits ↑",
        "drafted",
        "accepted",
        "rejected",
        "answers from the cache",
    )
    return [
        Table(
            "Answers compared with plain decoding from nothing cached",
            "Tokens, and all logits bit by bit, over prefill blocks of"
            f" {', '.join(map(str, sorted({record.chunk for record in compared})))} tokens. Equality proves"
            " something only where tokens were drafted, accepted, rejected and cached.",
            columns,
            tuple(_row(name, of) for name, of in (*groups.items(), ("all", compared))),
        )
    ]


def _row(name: str, compared: Sequence[Compared]) -> tuple[str, ...]:
    drafted = sum(record.drafted for record in compared)
    accepted = sum(record.accepted for record in compared)
    return (
        name,
        count(len(compared)),
        percent(share(record.same_tokens and record.same_logits for record in compared)),
        count(drafted),
        count(accepted),
        count(drafted - accepted),
        count(sum(record.cached_tokens > 0 for record in compared)),
    )
