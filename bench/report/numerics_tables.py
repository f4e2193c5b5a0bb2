"""The table of the numerics bench."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.numerics.rows import REFERENCE
from bench.records import Answer, Layout, Record
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, megabytes, number, percent, quotient, share


def tables(records: Sequence[Record]) -> list[Table]:
    """One row for each numerics; empty without any."""
    layouts = [record for record in records if isinstance(record, Layout)]
    if not layouts:
        return []
    answers = [record for record in records if isinstance(record, Answer)]
    reference = next((layout for layout in layouts if layout.name == REFERENCE and layout.answers), None)
    sizes = sorted({int(rows) for layout in layouts for rows, _ in layout.passes})
    columns = (
        "numerics",
        "perplexity ↓",
        "gaps exact ↑",
        "gaps passed (pass@1) ↑",
        *(f"{size} row{'s' if size > 1 else ''}, ms ↓" for size in sizes),
        "file, MB ↓",
        "private memory, MB ↓",
        "keys and values, kB/token ↓",
        "same answers as fp32 ↑",
        "same tokens ↑",
    )
    return [
        Table(
            "Numerics and layouts",
            "Each in a process of its own, on the same text and tasks. Perplexity of source code, in windows"
            " that start from nothing. Time: one forward pass, median. Private memory: of the process after"
            " its answers, mapped weights not counted. Same answers: greedy, all tokens; same tokens: up to"
            f" the first that differs.{_settings(layouts)}{_errors(layouts)}",
            columns,
            tuple(_row(layout, answers, reference, sizes) for layout in layouts),
        )
    ]


def _row(
    layout: Layout, answers: Sequence[Answer], reference: Layout | None, sizes: Sequence[int]
) -> tuple[str, ...]:
    own = [answer for answer in answers if answer.numerics == layout.name]
    passes = {int(rows): ms for rows, ms in layout.passes}
    perplexity = quotient(layout.nll, layout.tokens)
    return (
        layout.name + (" (failed)" if layout.error else ""),
        UNKNOWN if perplexity is None else f"{math.exp(perplexity):.4f}",
        percent(share(answer.exact for answer in own)),
        percent(share(answer.passed for answer in own if answer.passed is not None)),
        *(number(passes.get(size)) for size in sizes),
        megabytes(layout.file_bytes),
        megabytes(layout.private_bytes),
        number(quotient(layout.kv_token_bytes, 1000)),
        *_against(layout, reference),
    )


def _against(layout: Layout, reference: Layout | None) -> tuple[str, str]:
    """Shares of equal answers, and of equal tokens at their beginnings."""
    if reference is None:
        return UNKNOWN, UNKNOWN
    # A row that failed has fewer answers.
    pairs = list(zip(layout.answers, reference.answers, strict=False))
    same = sum(_common(own, other) for own, other in pairs)
    tokens = sum(max(len(own), len(other)) for own, other in pairs)
    return percent(share(own == other for own, other in pairs)), percent(quotient(same, tokens))


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


def _settings(layouts: Sequence[Layout]) -> str:
    """What the names do not say."""
    found = [
        f"{layout.name}: {', '.join(f'{key} {value}' for key, value in layout.settings.items())}"
        for layout in layouts
        if len(layout.settings) > 1
    ]
    return f" {'; '.join(found)}." if found else ""


def _errors(layouts: Sequence[Layout]) -> str:
    found = [f"{layout.name}: {' '.join(layout.error.split())}" for layout in layouts if layout.error]
    return f" Failed: {'; '.join(found)}" if found else ""
