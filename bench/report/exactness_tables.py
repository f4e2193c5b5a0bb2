"""The tables of the exactness bench."""

from __future__ import annotations

from collections.abc import Sequence

from bench.exactness.variants import Level
from bench.exactness.verdict import Tally, tallies, total
from bench.records import Checked, Compared, Record, Restarted
from bench.report.layout import Table
from bench.report.numbers import count, number, percent, quotient, share, spread


def tables(records: Sequence[Record]) -> list[Table]:
    """What was asked, and what was identical; empty without comparisons."""
    compared = [record for record in records if isinstance(record, Compared)]
    checked = [record for record in records if isinstance(record, Checked)]
    restarted = [record for record in records if isinstance(record, Restarted)]
    found = []
    if compared:
        found.append(_by_drafter(compared))
    if checked:
        found += [_prompts(checked), _by_level(checked)]
    if restarted:
        found.append(_restarts(restarted))
    return found


def _prompts(checked: Sequence[Checked]) -> Table:
    groups: dict[str, list[Checked]] = {}
    for record in checked:
        groups.setdefault(record.set, []).append(record)
    rows = [*sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])), ("all", list(checked))]
    return Table(
        "Exactness: the prompts",
        "Place: a completion in a real file. Edit: code to be rewritten. Text: a file that goes on."
        " The others are made up. Each prompt has one plain answer, the measure of the others.",
        (
            "prompts",
            "count",
            "tokens, median",
            "tokens, p95",
            "tokens, most",
            "above 4000 tokens",
            "decoded tokens",
        ),
        tuple((name, *_sizes(of)) for name, of in rows),
    )


def _sizes(checked: Sequence[Checked]) -> tuple[str, ...]:
    sizes = [record.prompt_tokens for record in checked]
    found = spread([float(size) for size in sizes])
    return (
        count(len(checked)),
        number(found.p50),
        number(found.p95),
        count(max(sizes)),
        count(sum(size > 4000 for size in sizes)),
        count(sum(record.tokens for record in checked)),
    )


def _by_level(checked: Sequence[Checked]) -> Table:
    rows = [
        _tally_row(factor, level, tally)
        for factor, levels in tallies(checked).items()
        for level, tally in sorted(levels.items(), key=_in_order)
    ]
    return Table(
        "Exactness: answers compared with plain decoding from nothing cached",
        "Tokens, and all logits bit by bit. Each answer counts once for each factor. Draft limit: most tokens"
        " drafted for one forward. Widest: tokens of the widest forward of the decoding.",
        (
            "factor",
            "level",
            "answers",
            "same tokens and logits ↑",
            "drafted",
            "accepted",
            "rejected",
            "from the cache",
            "widest",
        ),
        (*rows, _tally_row("all", "", total(checked))),
        words=2,
    )


def _in_order(entry: tuple[Level, Tally]) -> tuple[bool, float, str]:
    """Numbers by their size, words as they are."""
    level = entry[0]
    return (False, 0.0, level) if isinstance(level, str) else (True, float(level), "")


def _tally_row(factor: str, level: Level, tally: Tally) -> tuple[str, ...]:
    return (
        factor,
        str(level) if isinstance(level, str) else f"{level:g}",
        count(tally.answers),
        percent(quotient(tally.identical, tally.answers)),
        count(tally.drafted),
        count(tally.accepted),
        count(tally.rejected),
        count(tally.cached),
        count(tally.widest),
    )


def _restarts(restarted: Sequence[Restarted]) -> Table:
    return Table(
        "Exactness: after a change within the process",
        "Plain answers after the change against those of a process that never had anything else.",
        ("change", "answers", "same tokens and logits ↑"),
        tuple(
            (record.change, count(record.answers), percent(quotient(record.identical, record.answers)))
            for record in restarted
        ),
    )


def _by_drafter(compared: Sequence[Compared]) -> Table:
    """One row for each drafter and one for all."""
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
    return Table(
        "Answers compared with plain decoding from nothing cached",
        "Tokens, and all logits bit by bit, over prefill blocks of"
        f" {', '.join(map(str, sorted({record.chunk for record in compared})))} tokens. Equality proves"
        " something only where tokens were drafted, accepted, rejected and cached.",
        columns,
        tuple(_row(name, of) for name, of in (*groups.items(), ("all", list(compared)))),
    )


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
