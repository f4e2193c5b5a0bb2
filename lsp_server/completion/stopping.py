"""Where the engine is to end a suggestion, as far as the document decides it."""

from __future__ import annotations

from inference.api import StopRules
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.scope import body_indent, scope_indent
from lsp_server.completion.shape import Shape
from lsp_server.completion.stop_policy import below_cursor
from lsp_server.documents.line_index import to_lf
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot
from lsp_server.documents.text_marks import marks_of, open_mark_behind

# Characters after the cursor that the engine compares its text with.
STOP_SUFFIX_CHARS = 1024
# How far up the begin of a string that the cursor stands in is looked for; nearly always all the way.
_LINES_ABOVE = 100_000


def stop_rules(
    snapshot: Snapshot,
    cursor: Point,
    stop_ids: frozenset[int],
    options: CompletionOptions,
    place: FilterContext,
    shape: Shape,
) -> StopRules:
    """The rules for a suggestion of a shape at ``cursor`` (column in characters).

    ``options.filters_off`` may name ``suffix``, ``max-lines`` and ``scope`` to leave these rules out.

    Args:
        stop_ids: those of the prompt.
        place: the text around the cursor.
    """
    scoped = "scope" not in options.filters_off
    marks = marks_of(snapshot.language_id)
    above = snapshot.lines[max(0, cursor.line - _LINES_ABOVE) : cursor.line]
    within = open_mark_behind(above, place.head, marks)
    suffix = _suffix(snapshot, cursor, options)
    return StopRules(
        token_ids=stop_ids,
        strings=_closing_quotes(within, suffix),
        suffix=suffix,
        single_line=shape.single_line,
        finish_line=shape.finish_line,
        max_lines=None if "max-lines" in options.filters_off else options.max_lines or None,
        min_indent=_min_indent(place, shape) if scoped else None,
        first_line_scope=scoped and not place.head.strip(),
        below=below_cursor(snapshot, cursor, options.filters_off),
        text_marks=marks if scoped else (),
        open_text=within if scoped else "",
    )


def _closing_quotes(within: str, suffix: str) -> tuple[str, ...]:
    """Quotes of strings of several lines that stand behind the cursor. The model, which may not be shown them
    (context/auto_closed.py), closes the string itself and goes on with what stands below."""
    closes = len(within) > 1 and suffix.lstrip(" \t").startswith(within)
    return (within,) if closes else ()


def _suffix(snapshot: Snapshot, cursor: Point, options: CompletionOptions) -> str:
    if "suffix" in options.filters_off:
        return ""
    return without_surrogates(_text_after(snapshot, cursor, STOP_SUFFIX_CHARS))


def _min_indent(place: FilterContext, shape: Shape) -> int | None:
    if shape.reason == "empty-body":
        return body_indent(place.head, place.line_above, place.language_id)
    return scope_indent(place.head, place.language_id)


def _text_after(snapshot: Snapshot, cursor: Point, limit: int) -> str:
    text = to_lf(snapshot.lines[cursor.line])[cursor.column : cursor.column + limit]
    number = cursor.line + 1
    while len(text) < limit and number < len(snapshot.lines):
        text += to_lf(snapshot.lines[number][: limit + 2])
        number += 1
    return text[:limit]
