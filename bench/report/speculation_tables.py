"""Tables of the speculation bench."""

from __future__ import annotations

from collections.abc import Sequence

from bench.records import Call, Record
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, count, number, percent, quotient, times
from bench.report.pairs import Comparison, comparison_table, gain_of
from bench.report.speculation import (
    Calls,
    by_drafter,
    by_match,
    by_position,
    compare,
    figures,
    sweep,
)

_POSITIONS = 8
_MATCH_BOUNDS = (1, 2, 4, 8, 16, 32)


def tables(records: Sequence[Record]) -> tuple[list[Table], list[Comparison]]:
    """Tables and comparisons with other systems; empty without calls."""
    calls = Calls(record for record in records if isinstance(record, Call))
    comparisons = compare(calls)
    found = [
        _modes(calls),
        _others(calls, comparisons),
        _positions(calls),
        _drafters(calls),
        _matches(calls),
        _sweep(calls),
    ]
    return [table for table in found if table.rows], comparisons


def _modes(calls: Calls) -> Table:
    rows = []
    for set_, system, mode in _groups(calls):
        known = figures(calls.of(set_, system, mode), calls.plain(set_, system))
        gain, interval = (UNKNOWN, UNKNOWN) if known.over_plain is None else gain_of(known.over_plain)
        rows.append(
            (
                set_,
                system,
                mode,
                count(known.calls),
                number(known.tokens_per_forward),
                percent(known.acceptance),
                number(known.speed),
                gain,
                interval,
                percent(known.lossless),
                number(known.first_ms),
                number(known.prompt_speed),
            )
        )
    columns = (
        "set",
        "system",
        "mode",
        "calls",
        "tokens per forward ↑",
        "accepted of drafted ↑",
        "tokens/s ↑",
        "over plain ↑",
        "95 % interval",
        "same tokens as plain ↑",
        "first token, ms ↓",
        "prompt, tokens/s ↑",
    )
    return Table(
        "Decoding by set, system and mode",
        "Tokens per forward and tokens/s without the first token, which the prompt's last forward gives."
        " Over plain: against the plain mode of the same system, the same item and repeat; median over the"
        " items.",
        columns,
        tuple(rows),
        words=3,
    )


def _others(calls: Calls, comparisons: Sequence[Comparison]) -> Table:
    return comparison_table(
        "Draftline against other systems",
        "Each other system in its fastest mode on the set. The same item and repeat are a pair; the median"
        " over the items of how many times better Draftline is: above 1x it is better.",
        comparisons,
    )


def _positions(calls: Calls) -> Table:
    rows = []
    for set_, system, mode in _groups(calls):
        found = by_position(calls.of(set_, system, mode), _POSITIONS)
        if found[0][0]:
            cells = (percent(quotient(right, tried)) for tried, right in found)
            rows.append((set_, system, mode, count(found[0][0]), *cells))
    return Table(
        "Accepted by position in the draft",
        "Of the drafts that reach the position, the share whose token there and all before it are right (↑).",
        ("set", "system", "mode", "drafts", *(str(place + 1) for place in range(_POSITIONS))),
        tuple(rows),
        words=3,
    )


def _drafters(calls: Calls) -> Table:
    rows = []
    for set_, system, mode in _groups(calls):
        for name, (drafts, tokens, right) in by_drafter(calls.of(set_, system, mode)).items():
            cells = percent(quotient(right, tokens)), number(quotient(right, drafts))
            rows.append((set_, system, mode, name, count(drafts), count(tokens), *cells))
    columns = (
        "set",
        "system",
        "mode",
        "drafter",
        "drafts",
        "drafted tokens",
        "accepted ↑",
        "accepted tokens per draft ↑",
    )
    return Table(
        "Accepted by drafter",
        "Suffix: what followed the longest earlier occurrence of the ending. Pointer: the place being copied"
        " from, across a change. Recycling: what the model chose behind the same tokens before."
        + (" Model: a smaller model's text." if any(row[3] == "model" for row in rows) else ""),
        columns,
        tuple(rows),
        words=4,
    )


def _matches(calls: Calls) -> Table:
    below = (0, *_MATCH_BOUNDS)
    names = [
        str(bound) if bound - lower == 1 else f"{lower + 1} to {bound}"
        for lower, bound in zip(below, _MATCH_BOUNDS, strict=False)
    ]
    names.append(f"over {_MATCH_BOUNDS[-1]}")
    rows = []
    for set_, system, mode in _groups(calls):
        for name, (drafts, tokens, right) in zip(
            names, by_match(calls.of(set_, system, mode), _MATCH_BOUNDS), strict=True
        ):
            if drafts:
                cells = percent(quotient(right, tokens)), number(quotient(right, drafts))
                rows.append((set_, system, mode, name, count(drafts), count(tokens), *cells))
    columns = (
        "set",
        "system",
        "mode",
        "matched tokens",
        "drafts",
        "drafted tokens",
        "accepted ↑",
        "accepted tokens per draft ↑",
    )
    return Table(
        "Accepted by length of the match",
        "The match is the text before the cursor that occurred earlier and that the draft continues.",
        columns,
        tuple(rows),
        words=4,
    )


def _sweep(calls: Calls) -> Table:
    found = {
        (set_, system): lengths
        for set_ in calls.sets
        for system in calls.systems
        if (lengths := sweep(calls, set_, system))
    }
    columns = sorted({length for lengths in found.values() for length in lengths})
    return Table(
        "Sweep of the draft length",
        "Speed over plain decoding if every draft has up to so many tokens, without the planner that"
        " otherwise chooses the length; the same item and repeat, median over the items.",
        ("set", "system", *(f"up to {length} ↑" for length in columns)),
        tuple(
            (
                *group,
                *(times(lengths[length].gain) if length in lengths else UNKNOWN for length in columns),
            )
            for group, lengths in found.items()
        ),
        words=2,
    )


def _groups(calls: Calls) -> list[tuple[str, str, str]]:
    return [
        (set_, system, mode)
        for set_ in calls.sets
        for system in calls.systems
        for mode in calls.modes(set_, system)
    ]
