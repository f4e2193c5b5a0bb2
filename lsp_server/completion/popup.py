"""The completion popup's selected entry, which a suggestion must extend (LSP 3.18)."""

from __future__ import annotations

from lsp_server.completion.options import Selected
from lsp_server.context.secrets import redact
from lsp_server.documents.positions import PositionEncoding
from lsp_server.documents.text import Point, Snapshot


def selected_entry(
    snapshot: Snapshot,
    cursor: Point,
    selected: tuple[Point, Point, str] | None,
    encoding: PositionEncoding,
) -> Selected | None:
    """The entry, given its range in the client's units and its text.

    None if there is none, or its range is not on the cursor's line or does not contain the cursor.
    """
    if selected is None:
        return None
    start = snapshot.locate(selected[0], encoding)
    end = snapshot.locate(selected[1], encoding)
    on_line = start.line == end.line == cursor.line
    if not on_line or not start.column <= cursor.column <= end.column or "\n" in selected[2]:
        return None
    return Selected(selected[2], start.column, end.column)


def with_entry(snapshot: Snapshot, number: int, selected: Selected) -> tuple[Snapshot, Point]:
    """The document as it would be with the popup entry accepted, and the cursor behind that entry."""
    line = snapshot.lines[number]
    changed = redact(line[: selected.start] + selected.text + line[selected.end :])
    lines = (*snapshot.lines[:number], changed, *snapshot.lines[number + 1 :])
    column = selected.start + len(selected.text)
    accepted = Snapshot(snapshot.uri, snapshot.version, snapshot.language_id, lines, snapshot.eol)
    return accepted, Point(number, column)
