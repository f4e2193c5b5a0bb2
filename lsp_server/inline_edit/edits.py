"""Hunks as edits of a document: ranges between lines, text with the document's own line ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.documents.line_index import strip_eol
from lsp_server.documents.text import Point
from lsp_server.inline_edit.diff import Hunk
from lsp_server.inline_edit.selection import Selection


@dataclass(frozen=True)
class LineEdit:
    """Replace the text from ``start`` to ``end`` (columns in characters) by ``text``."""

    start: Point
    end: Point
    text: str


def line_edit(selection: Selection, hunk: Hunk) -> LineEdit:
    """The edit that a hunk asks for.

    Line ends around the hunk stay what they are: a document may mix them, and the one behind the selection
    is not the selection's.
    """
    snapshot = selection.snapshot
    start, stop = selection.first + hunk.start, selection.first + hunk.stop
    eol = _eol(selection)
    text = eol.join(hunk.lines)

    def end_of(number: int) -> Point:
        return Point(number, len(snapshot.line(number)))

    if hunk.lines and hunk.start < hunk.stop:
        return LineEdit(Point(start, 0), end_of(stop - 1), text)
    if hunk.lines and hunk.start == 0:
        return LineEdit(Point(start, 0), Point(start, 0), text + eol)
    if hunk.start > 0:
        before = end_of(start - 1)
        return LineEdit(before, end_of(stop - 1), eol + text if hunk.lines else "")
    if stop < selection.stop or selection.takes_end:
        return LineEdit(Point(start, 0), Point(stop, 0), "")
    return LineEdit(Point(start, 0), end_of(stop - 1), "")


def line_edits(selection: Selection, hunks: Sequence[Hunk]) -> tuple[LineEdit, ...]:
    """The edits of several hunks, none of which depends on another."""
    return tuple(line_edit(selection, hunk) for hunk in hunks)


def _eol(selection: Selection) -> str:
    """The document's line end, but a lone ``\\r`` and a ``\\n`` would become one."""
    lines = selection.snapshot.lines
    near = lines[max(selection.first - 1, 0) : selection.stop]
    kinds = {line[len(strip_eol(line)) :] for line in near} - {""} | {selection.snapshot.eol}
    return "\r\n" if len(kinds) > 1 and "\r" in kinds else selection.snapshot.eol
