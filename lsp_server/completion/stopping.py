"""Where the engine is to end a suggestion, as far as the document decides it."""

from __future__ import annotations

from inference.api import StopRules
from lsp_server.completion.filters.suffix_overlap import CLOSING
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.scope import scope_indent
from lsp_server.completion.stop_policy import below_cursor
from lsp_server.documents.line_index import to_lf
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot

# Characters after the cursor that the engine compares its text with.
STOP_SUFFIX_CHARS = 1024


def stop_rules(
    snapshot: Snapshot, cursor: Point, stop_ids: frozenset[int], options: CompletionOptions
) -> StopRules:
    """The rules for a suggestion at ``cursor`` (column in characters); ``stop_ids``: those of the prompt."""
    line = snapshot.line(cursor.line)
    head, rest = line[: cursor.column], line[cursor.column :]
    return StopRules(
        token_ids=stop_ids,
        suffix=without_surrogates(_text_after(snapshot, cursor, STOP_SUFFIX_CHARS)),
        single_line=CLOSING.fullmatch(rest) is None,
        max_lines=options.max_lines or None,
        min_indent=scope_indent(head),
        first_line_scope=not head.strip(),
        below=below_cursor(snapshot, cursor, options.filters_off),
    )


def _text_after(snapshot: Snapshot, cursor: Point, limit: int) -> str:
    text = to_lf(snapshot.lines[cursor.line])[cursor.column : cursor.column + limit]
    number = cursor.line + 1
    while len(text) < limit and number < len(snapshot.lines):
        text += to_lf(snapshot.lines[number][: limit + 2])
        number += 1
    return text[:limit]
