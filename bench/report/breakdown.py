"""Where the time of forward passes goes, against what each part needs at least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.records import Bandwidth, Part, Record
from bench.report.layout import Table
from bench.report.numbers import count, median, number, percent, quotient, times
from bench.report.roofline import operations
from bench.report.systems import labels

WHOLE, ATTENTION = "whole", "attention"
REST = "rest"


@dataclass(frozen=True)
class PartCost:
    """One part of the passes of one shape; medians over the repeats.

    Attributes:
        floor_ms: the longer of reading and computing, None if neither was measured or bounds it.
        share: of the whole pass.
    """

    label: str
    context: int
    rows: int
    name: str
    ms: float
    floor_ms: float | None
    share: float | None


def costs(records: Iterable[Record]) -> list[PartCost]:
    """By label, shape and part; the last part of a shape is the rest, which is Python's."""
    records = list(records)
    parts = [record for record in records if isinstance(record, Part)]
    limits = [record for record in records if isinstance(record, Bandwidth)]
    names = labels(parts)
    groups: dict[tuple[str, int, int], dict[str, list[Part]]] = {}
    for part in parts:
        shape = (names[part.system, part.numerics], part.context, part.rows)
        groups.setdefault(shape, {}).setdefault(part.name, []).append(part)
    found = []
    for (label, context, rows), by_name in groups.items():
        ms = {name: median([part.ms for part in of]) or 0.0 for name, of in by_name.items()}
        whole = ms.get(WHOLE)
        for name, of in by_name.items():
            floor = _floor_ms(of[0], limits)
            found.append(PartCost(label, context, rows, name, ms[name], floor, quotient(ms[name], whole)))
        if whole is not None:
            rest = whole - sum(value for name, value in ms.items() if name != WHOLE)
            found.append(PartCost(label, context, rows, REST, rest, None, quotient(rest, whole)))
    return found


def tables(records: Sequence[Record]) -> list[Table]:
    """The table; empty without parts."""
    found = costs(records)
    if not found:
        return []
    columns = (
        "system and numerics",
        "context",
        "rows",
        "part",
        "all layers, ms ↓",
        "of the whole",
        "floor, ms",
        "part / floor ↓",
    )
    return [
        Table(
            "Where the time of a forward pass goes",
            "Each part run alone in all layers, medians over the repeats. Floor: the longer of reading its"
            " weights, or keys and values, and computing its products at the speeds above. Row steps: norms,"
            " additions, rotation, activation, quantisation. Rest: what is left of the whole, mostly Python;"
            " below 0 where a part alone takes longer than within a pass.",
            columns,
            tuple(
                (
                    cost.label,
                    count(cost.context),
                    count(cost.rows),
                    cost.name,
                    number(cost.ms),
                    percent(cost.share),
                    number(cost.floor_ms),
                    times(quotient(cost.ms, cost.floor_ms)),
                )
                for cost in found
            ),
            words=4,
        )
    ]


def _floor_ms(part: Part, limits: Sequence[Bandwidth]) -> float | None:
    floors = []
    for found in limits:
        floors.append(quotient(_thousand(part.bytes), found.bytes_per_second))
        kind = "fp32" if part.name == ATTENTION else part.numerics
        floors.append(quotient(_thousand(part.ops), operations(found, kind)))
    return max((floor for floor in floors if floor is not None), default=None)


def _thousand(value: float | None) -> float | None:
    return None if value is None else 1000 * value
