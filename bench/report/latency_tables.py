"""Tables of the latency bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.records import Item, Key, Record
from bench.report.latency import (
    FIRST_CHARS,
    LIMITS_MS,
    SIZE_GROUPS,
    Figures,
    compare,
    figures,
    size_group,
)
from bench.report.layout import Table
from bench.report.numbers import Spread, count, megabytes, number, percent
from bench.report.pairs import Comparison, comparison_table
from bench.report.systems import in_order, reference

_BREAKDOWN_LIMIT_MS = 100
_ACTIONS = ("type", "newline", "typo", "backspace", "move", "edit-above", "accept")
_KINDS = ("body", "block", "line", "rest-of-line")

# Name and unit, direction, how it is written.
_ROWS: tuple[tuple[str, str, Callable[[Figures], str]], ...] = (
    ("keys asked", "", lambda known: count(known.keys)),
    ("items finished", "", lambda known: count(known.items)),
    ("all answers, ms: p50 / p95 / p99", "↓", lambda known: _levels(known.answers)),
    ("answers of the model, ms: p50 / p95 / p99", "↓", lambda known: _levels(known.model)),
    ("– first token in the engine, ms: p50 / p95 / p99", "↓", lambda known: _levels(known.first)),
    ("– result in the engine, ms: p50 / p95 / p99", "↓", lambda known: _levels(known.total)),
    *(
        (f"on screen within {limit} ms", "↑", lambda known, limit=limit: percent(known.within[limit]))
        for limit in LIMITS_MS
    ),
    ("answered", "↑", lambda known: percent(known.answered)),
    ("– of these from a cache", "↑", lambda known: percent(known.from_cache)),
    ("– of these silent without asking the model", "", lambda known: percent(known.unasked)),
    ("suggestion shown", "", lambda known: percent(known.shown)),
    ("– right as a whole", "↑", lambda known: percent(known.right)),
    (f"– first {FIRST_CHARS} characters right", "↑", lambda known: percent(known.right_first)),
    ("– first character right", "↑", lambda known: percent(known.right_char)),
    ("superseded by the next key", "", lambda known: percent(known.superseded)),
    ("timeouts", "↓", lambda known: percent(known.timeouts)),
    ("errors", "↓", lambda known: percent(known.errors)),
    ("characters saved per character typed", "↑", lambda known: number(known.saved)),
    ("prompt tokens reused", "↑", lambda known: percent(known.reused)),
    ("new prompt tokens per model call: p50 / p95", "↓", lambda known: _levels(known.new_tokens, 2)),
    ("– but for the first look at a document: p50 / p95", "↓", lambda known: _levels(known.later_tokens, 2)),
    ("new prompt tokens per key asked", "↓", lambda known: number(known.tokens_per_key)),
    ("tokens per forward", "↑", lambda known: number(known.tokens_per_forward)),
    ("drafted tokens accepted", "↑", lambda known: percent(known.acceptance)),
    ("decoding after the first token, tokens/s", "↑", lambda known: number(known.decoding)),
    ("private memory, most, MB", "↓", lambda known: megabytes(known.private_bytes)),
    ("mapped files in memory, most, MB", "↓", lambda known: megabytes(known.mapped_bytes)),
    ("CPU time per key, s", "↓", lambda known: number(known.cpu_seconds)),
    ("documents restored", "↑", lambda known: percent(known.restored)),
)

_BREAKDOWNS: tuple[tuple[str, tuple[str, ...], Callable[[Key], str]], ...] = (
    ("kind of piece", _KINDS, lambda key: key.kind),
    ("language", (), lambda key: key.language),
    ("characters before the cursor", SIZE_GROUPS, lambda key: size_group(key.position)),
    ("characters of the document", SIZE_GROUPS, lambda key: size_group(key.document_chars)),
    (
        "action",
        tuple(f"{action}{more}" for action in _ACTIONS for more in ("", ", along a suggestion")),
        lambda key: f"{key.action}{', along a suggestion' if key.along else ''}",
    ),
)


def tables(records: Sequence[Record]) -> tuple[list[Table], list[Comparison], list[str]]:
    """Tables, comparisons with other systems and warnings; empty without keys."""
    measured = [record for record in records if isinstance(record, (Key, Item))]
    systems = in_order(measured)
    if not systems:
        return [], [], []
    own = {name: [record for record in measured if record.system == name] for name in systems}
    whole = {name: figures(_keys(of), _items(of)) for name, of in own.items()}
    ours = reference(systems)
    comparisons = [
        comparison
        for name in systems
        if ours is not None and name != ours
        for comparison in compare(own[ours], own[name], name)
    ]
    found = [_overall(whole), *(_breakdown(own, *breakdown) for breakdown in _BREAKDOWNS)]
    if comparisons:
        found.insert(
            1,
            comparison_table(
                "Keys, item by item",
                "Times and tokens: the median of each item's keys, then the median over the items of the"
                " ratios; above 1x Draftline is better. Shares: the mean over the items of the differences in"
                " percentage points (pp); above 0 Draftline is better. Items that one system lacks are left"
                " out.",
                comparisons,
            ),
        )
    return found, comparisons, _warnings(own)


def _overall(whole: dict[str, Figures]) -> Table:
    return Table(
        "Keys",
        "Times run from sending the change to having the answer, over the keys that were answered; the shares"
        " on screen, answered and shown are of all keys asked, so a system that stays silent gains nothing. A"
        " suggestion is right if it is what is typed next; one behind a slip or at another place never is.",
        ("figure", "better", *whole),
        tuple((name, better, *(write(known) for known in whole.values())) for name, better, write in _ROWS),
        words=2,
    )


def _breakdown(
    own: dict[str, list[Key | Item]], by: str, order: tuple[str, ...], group_of: Callable[[Key], str]
) -> Table:
    keys = {name: _keys(records) for name, records in own.items()}
    groups = {group_of(key) for of in keys.values() for key in of}
    ranked = sorted(groups, key=lambda group: (order.index(group) if group in order else len(order), group))
    rows = []
    for group in ranked:
        for name, of in keys.items():
            known = figures([key for key in of if group_of(key) == group], [])
            if known.keys:
                rows.append(
                    (
                        group,
                        name,
                        count(known.keys),
                        number(known.answers.p50),
                        number(known.answers.p95),
                        number(known.model.p50),
                        percent(known.within[_BREAKDOWN_LIMIT_MS]),
                        percent(known.shown),
                        percent(known.right),
                    )
                )
    columns = (
        by,
        "system",
        "keys",
        "p50, ms ↓",
        "p95, ms ↓",
        "model p50, ms ↓",
        f"on screen in {_BREAKDOWN_LIMIT_MS} ms ↑",
        "shown",
        "right of shown ↑",
    )
    return Table(f"Keys by {by}", "", columns, tuple(rows), words=2)


def _warnings(own: dict[str, list[Key | Item]]) -> list[str]:
    found = []
    for name, records in own.items():
        lost = [item for item in _items(records) if not item.restored]
        if lost:
            found.append(
                f"{name}: {len(lost)} of {len(_items(records))} documents were not as before after retyping"
                f" (first: {lost[0].path}), so its figures are not to be trusted."
            )
    return found


def _keys(records: Sequence[Key | Item]) -> list[Key]:
    return [record for record in records if isinstance(record, Key)]


def _items(records: Sequence[Key | Item]) -> list[Item]:
    return [record for record in records if isinstance(record, Item)]


def _levels(known: Spread, levels: int = 3) -> str:
    return " / ".join(number(value) for value in (known.p50, known.p95, known.p99)[:levels])
