"""What the filters get to see of a document."""

from __future__ import annotations

from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.indent_style import indent_unit
from lsp_server.completion.options import CompletionOptions
from lsp_server.documents.surroundings import around
from lsp_server.documents.text import Point, Snapshot

# Neighbouring lines further away than this are no neighbours.
_NEIGHBOUR_LINES = 8
# Enough to meet the heads of the blocks around the cursor in most functions.
_LINES_ABOVE = 60
_LINES_BELOW = 30
# Beyond this a line is data, and no filter needs its end.
_LINE_CHARS = 400


def filter_context(snapshot: Snapshot, cursor: Point, options: CompletionOptions) -> FilterContext:
    """The context of a suggestion at ``cursor`` (column in characters)."""
    line = snapshot.line(cursor.line)
    head = line[: cursor.column]
    before, after = around(snapshot, cursor)
    first = max(cursor.line - _LINES_ABOVE, 0)
    above = tuple(snapshot.line(number)[:_LINE_CHARS] for number in range(first, cursor.line))
    stop = min(cursor.line + 1 + _LINES_BELOW, len(snapshot.lines))
    below = tuple(snapshot.line(number)[:_LINE_CHARS] for number in range(cursor.line + 1, stop))
    return FilterContext(
        head=head,
        rest=line[cursor.column :],
        line_above=_first_text(above[: -_NEIGHBOUR_LINES - 1 : -1]),
        line_below=_first_text(below[:_NEIGHBOUR_LINES]),
        lines_above=above,
        lines_below=below,
        from_start=first == 0,
        indent_unit=indent_unit((*above, head, *below)),
        language_id=snapshot.language_id,
        replaces_rest=options.replaces_rest,
        off=options.filters_off,
        before=before,
        after=after,
    )


def _first_text(lines: tuple[str, ...]) -> str:
    return next((line for line in lines if line.strip()), "")
