"""Tables of forward passes, prompts and memory."""

from __future__ import annotations

from collections.abc import Sequence

from bench.records import Record
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, count, megabytes, number, quotient, times
from bench.report.pairs import Comparison, comparison_table
from bench.report.roofline import ForwardCost, PrefillCost, Roofline


def tables(records: Sequence[Record]) -> tuple[list[Table], list[Comparison]]:
    """Tables and comparisons with other systems; empty without such records."""
    measured = Roofline(records)
    comparisons = measured.compare()
    found = [
        _limits(measured),
        _numerics(measured),
        _rows(measured.by_rows()),
        _contexts(measured.by_context()),
        _prefills(measured.prefills()),
        comparison_table(
            "Prompts and memory, Draftline against other systems",
            'Prompts: repeat by repeat, so "items" are repeats. Above 1x Draftline is better.',
            comparisons,
        ),
        _memory(measured),
    ]
    return [table for table in found if table.rows], comparisons


def _limits(measured: Roofline) -> Table:
    return Table(
        "What the machine allows",
        "Measured in this run: reading a buffer larger than the caches, and large products (multiply and add"
        " count as two). These are the floors below.",
        ("threads", "reading, GB/s ↑", "int8, 10⁹ operations/s ↑", "fp32, 10⁹ operations/s ↑"),
        tuple(
            (
                count(found.threads),
                number(found.bytes_per_second / 1e9),
                number(quotient(found.int8_ops_per_second, 1e9)),
                number(quotient(found.float_ops_per_second, 1e9)),
            )
            for found in measured.bandwidths
        ),
        words=0,
    )


def _numerics(measured: Roofline) -> Table:
    """One row for each system and numerics, of what the other tables have in detail."""
    rows = []
    for label in measured.labels:
        ones = [cost for cost in measured.by_rows() if cost.label == label and cost.rows == 1]
        prefills = [cost for cost in measured.prefills() if cost.label == label]
        memory = [found for found in measured.memory if measured.label(found) == label]
        private = [found.private_bytes for found in memory if found.private_bytes is not None]
        weights = next((found.weight_bytes for found in memory if found.weight_bytes is not None), None)
        one = ones[0] if ones else None
        longest = prefills[-1] if prefills else None
        rows.append(
            (
                label,
                megabytes(weights),
                number(one.ms if one else None),
                number(quotient(1000, one.ms) if one else None),
                times(one.over_floor if one else None),
                number(longest.speed if longest else None),
                count(longest.tokens if longest else None),
                megabytes(max(private, default=None)),
            )
        )
    columns = (
        "system and numerics",
        "weights, MB ↓",
        "one token, ms ↓",
        "tokens/s ↑",
        "of the floor ↓",
        "prompt, tokens/s ↑",
        "of tokens",
        "private memory, MB ↓",
    )
    return Table(
        "Numerics",
        "Passes of one token without speculation; the longest prompt; the process's private memory at most.",
        columns,
        tuple(rows),
    )


def _rows(costs: Sequence[ForwardCost]) -> Table:
    return Table(
        "Cost of a forward pass by rows",
        "Milliseconds (↓), medians over the repeats. A draft of n tokens is checked in a pass of n + 1 rows."
        " Floor: reading the weights once.",
        (
            "system and numerics",
            "context",
            "rows",
            "whole, ms ↓",
            "linear layers, ms ↓",
            "floor, ms",
            "whole / floor ↓",
            "linear / floor ↓",
            "over one row ↓",
        ),
        tuple(
            (
                cost.label,
                count(cost.context),
                count(cost.rows),
                number(cost.ms),
                number(cost.linear_ms),
                number(cost.floor_ms),
                times(cost.over_floor),
                times(quotient(cost.linear_ms, cost.floor_ms)),
                times(cost.over_one),
            )
            for cost in costs
        ),
    )


def _contexts(costs: Sequence[ForwardCost]) -> Table:
    return Table(
        "Decoding speed by length of the context",
        "Passes of one token without speculation, medians over the repeats.",
        ("system and numerics", "context, tokens", "ms ↓", "tokens/s ↑", "whole / floor ↓"),
        tuple(
            (
                cost.label,
                count(cost.context),
                number(cost.ms),
                number(quotient(1000, cost.ms)),
                times(cost.over_floor),
            )
            for cost in costs
        ),
    )


def _prefills(costs: Sequence[PrefillCost]) -> Table:
    return Table(
        "Reading a prompt",
        "From nothing cached, medians over the repeats. Limit: the slower of reading the weights for each"
        " block of the prompt and computing the linear layers' products.",
        ("system and numerics", "tokens", "ms ↓", "tokens/s ↑", "limit, tokens/s", "of the limit ↑"),
        tuple(
            (
                cost.label,
                count(cost.tokens),
                number(cost.ms),
                number(cost.speed),
                number(cost.floor_speed),
                _share_of_limit(cost),
            )
            for cost in costs
        ),
    )


def _share_of_limit(cost: PrefillCost) -> str:
    reached = quotient(cost.floor_ms, cost.ms)
    # A measured limit may be passed by noise: more than 100 % is shown as it is.
    return UNKNOWN if reached is None else f"{reached * 100:.0f} %"


def _memory(measured: Roofline) -> Table:
    columns = (
        "system and numerics",
        "speculation",
        "context, tokens",
        "private, MB ↓",
        "mapped files, MB ↓",
        "weights, MB ↓",
        "keys and values, MB ↓",
    )
    return Table(
        "Memory",
        "Of the whole process: private memory would be free if it ended, mapped files are shared with the"
        " page cache. Weights: the packed copy. Keys and values: one slot of the cache.",
        columns,
        tuple(
            (
                measured.label(found),
                found.draft,
                count(found.context),
                megabytes(found.private_bytes),
                megabytes(found.mapped_bytes),
                megabytes(found.weight_bytes),
                megabytes(found.kv_bytes),
            )
            for found in measured.memory
        ),
        words=2,
    )
