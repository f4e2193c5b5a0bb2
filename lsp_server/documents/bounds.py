"""Parts of a document of bounded size, for whatever would otherwise look at all of it."""

from __future__ import annotations

from lsp_server.documents.line_index import to_lf
from lsp_server.documents.text import Point, Snapshot

# A longer line (minified code, data) is cut around the cursor before anything looks at it.
MAX_LINE = 64 * 1024
# Characters of a document that guesses draw on.
MAX_LEARNED = 256 * 1024


def clipped(snapshot: Snapshot, cursor: Point) -> tuple[Snapshot, Point]:
    """``snapshot`` with the cursor's line cut to at most ``MAX_LINE`` characters around the cursor.

    The cut moves in steps of a quarter of that, so that it stays where it is while the user types.
    """
    line = snapshot.lines[cursor.line]
    if len(line) <= MAX_LINE:
        return snapshot, cursor
    step = MAX_LINE // 4
    start = max(0, cursor.column // step - 1) * step
    piece = line[start : start + 3 * step]
    if start + 3 * step < len(line) and cursor.line + 1 < len(snapshot.lines):
        piece += "\n"
    lines = (*snapshot.lines[: cursor.line], piece, *snapshot.lines[cursor.line + 1 :])
    bounded = Snapshot(snapshot.uri, snapshot.version, snapshot.language_id, lines, snapshot.eol)
    return bounded, Point(cursor.line, cursor.column - start)


def excerpt(snapshot: Snapshot, line: int, limit: int = MAX_LEARNED) -> str:
    """At most ``limit`` characters of whole lines around ``line``, with ``\\n`` as line ends: all of a
    document that is no longer. Of a line longer than ``MAX_LINE`` only the beginning is taken."""
    lines = snapshot.lines
    first = stop = max(0, min(line, len(lines) - 1))
    room = limit
    above = below = True
    while above or below:
        if below:
            below = stop < len(lines) and (room := room - _length(lines[stop])) >= 0
            stop += below
        if above:
            above = first > 0 and (room := room - _length(lines[first - 1])) >= 0
            first -= above
    return "".join(_cut(line) for line in lines[first:stop])


def _length(line: str) -> int:
    return min(len(line), MAX_LINE + 1)


def _cut(line: str) -> str:
    return to_lf(line) if len(line) <= MAX_LINE else line[:MAX_LINE] + "\n"
