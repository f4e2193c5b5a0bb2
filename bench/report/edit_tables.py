"""Tables of edits: what they cost, and that reading an answer as it streams loses nothing."""

from __future__ import annotations

from collections.abc import Sequence

from bench.quality.summary import Way
from bench.records import Answer
from bench.report.layout import Table
from bench.report.numbers import UNKNOWN, count, median, number, percent, quotient, share

_RAW, _PARSED = "raw, ", "parsed, "


def edit_tables(answers: Sequence[Answer]) -> list[Table]:
    """Tables of the set "edit"; none for results that do not tell the forwards."""
    ways: dict[Way, dict[str, Answer]] = {}
    for answer in answers:
        if answer.set == "edit" and answer.decode_ms is not None:
            way = Way(answer.system, answer.set, answer.variant, answer.numerics)
            ways.setdefault(way, {})[answer.item] = answer
    if not ways:
        return []
    pairs = [(way, raw) for way in ways if (raw := _raw_of(way)) in ways and way.variant.startswith(_PARSED)]
    return [_costs(ways), *([_losses(ways, pairs)] if pairs else [])]


def _raw_of(way: Way) -> Way:
    """The plainest decoding of the same prompt: without drafts where that was measured."""
    return way._replace(variant=f"{_RAW}none")


def _costs(ways: dict[Way, dict[str, Answer]]) -> Table:
    rows = []
    for way, items in ways.items():
        found = list(items.values())
        tokens = sum(each.tokens or 0 for each in found)
        forwards = [each.forwards for each in found]
        known = None if None in forwards else sum(each or 0 for each in forwards)
        seconds = sum(each.decode_ms or 0.0 for each in found) / 1000
        hunks = [each.first_hunk_ms for each in found if each.first_hunk_ms is not None]
        rows.append(
            (
                way.system,
                way.variant,
                way.numerics or UNKNOWN,
                count(len(found)),
                number(quotient(tokens, known)),
                number(quotient(tokens, seconds)),
                number(median(hunks)),
                percent(share(each.shown_behind <= 1 for each in found if each.shown_behind is not None)),
                number(median([each.ms for each in found])),
            )
        )
    return Table(
        "What an edit costs",
        "Raw: the model's text for the server's prompt, cut at the closing fence. Parsed: the server's way,"
        " read and compared with the code while it streams. Tokens of all answers per decode forward, and per"
        " second from the first token to the end; medians of the time to the first changed lines and to the"
        " end; nothing cached. Shown within 2 forwards: of the edits that show a change before their end,"
        " those where it is there with the forward that ends the first line that differs, or with the next"
        " one.",
        (
            "system",
            "variant",
            "numerics",
            "answers",
            "tokens per forward ↑",
            "tokens/s ↑",
            "first change, ms ↓",
            "shown within 2 forwards ↑",
            "total, ms ↓",
        ),
        tuple(rows),
        words=3,
    )


def _losses(ways: dict[Way, dict[str, Answer]], pairs: Sequence[tuple[Way, Way]]) -> Table:
    rows = []
    for way, raw in pairs:
        both = [(ways[way][item], ways[raw][item]) for item in ways[way] if item in ways[raw]]
        tested = [(own, other) for own, other in both if own.passed is not None and other.passed is not None]
        rows.append(
            (
                f"{way.system}: {way.variant}",
                way.numerics or UNKNOWN,
                count(len(both)),
                count(sum(own.text.strip() == other.text.strip() for own, other in both)),
                count(sum(bool(other.passed) and not own.passed for own, other in tested)),
                count(sum(bool(own.passed) and not other.passed for own, other in tested)),
            )
        )
    return Table(
        "What reading an edit loses",
        "Item by item against the raw text of plain decoding in the same numerics. An answer that is placed"
        " where the code stood has its indentation, which the raw text may lack.",
        ("variant", "numerics", "items", "same text", "passed raw only ↓", "passed parsed only"),
        tuple(rows),
        words=2,
    )
