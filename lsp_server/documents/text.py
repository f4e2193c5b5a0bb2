"""One open document: lines edited in place, and immutable snapshots for requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lsp_server.documents.line_index import Eol, dominant_eol, split_lines, strip_eol, to_lf
from lsp_server.documents.positions import PositionEncoding, join_surrogates, to_index


@dataclass(frozen=True)
class Point:
    """A place in a text: 0-based line, and column in the client's units or in characters."""

    line: int
    column: int


@dataclass(frozen=True)
class Change:
    """One content change of ``didChange``; without ``start`` and ``end`` it is the whole text.

    The points are in units of the client's position encoding.
    """

    text: str
    start: Point | None = None
    end: Point | None = None


@dataclass(frozen=True)
class Snapshot:
    """The text of a document at one version.

    Attributes:
        lines: with their line ends; the last one has none. Never empty.
        eol: the commonest line end, which the client puts back in place of our ``\\n``.
    """

    uri: str
    version: int
    language_id: str
    lines: tuple[str, ...]
    eol: Eol = "\n"

    @classmethod
    def of(cls, text: str, uri: str = "", version: int = 0, language_id: str = "") -> Snapshot:
        """A snapshot of a text that is in no store (a file read by the command line)."""
        lines = tuple(split_lines(join_surrogates(text)))
        return cls(uri, version, language_id, lines, dominant_eol(lines))

    def line(self, number: int) -> str:
        """Line ``number`` without its line end."""
        return strip_eol(self.lines[number])

    def locate(self, point: Point, encoding: PositionEncoding) -> Point:
        """``point`` clamped into the text, its column in characters."""
        return locate(self.lines, point, encoding)

    def lf(self, first: int, stop: int) -> str:
        """Lines ``first`` to ``stop`` (exclusive) with ``\\n`` as line ends, as the model sees them."""
        return "".join(map(to_lf, self.lines[first:stop]))


class Document:
    """A text under edit. Not thread-safe: the event loop owns it, requests take snapshots.

    An edit costs the lines it touches plus moving the pointers behind them, not the text.
    """

    def __init__(self, uri: str, version: int, language_id: str, text: str) -> None:
        self.uri = uri
        self.version = version
        self.language_id = language_id
        self._lines = split_lines(join_surrogates(text))
        self._snapshot: Snapshot | None = None

    def apply(self, version: int, changes: Iterable[Change], encoding: PositionEncoding) -> None:
        """Apply the changes of one ``didChange`` in order; positions out of range clamp."""
        for change in changes:
            if change.start is None or change.end is None:
                self._lines = split_lines(join_surrogates(change.text))
            else:
                self._replace(change.start, change.end, change.text, encoding)
        self.version = version
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """The current text; the same object until the next edit."""
        if self._snapshot is None:
            lines = tuple(self._lines)
            self._snapshot = Snapshot(self.uri, self.version, self.language_id, lines, dominant_eol(lines))
        return self._snapshot

    def _replace(self, start: Point, end: Point, text: str, encoding: PositionEncoding) -> None:
        lines = self._lines
        first = locate(lines, start, encoding)
        last = locate(lines, end, encoding)
        if (last.line, last.column) < (first.line, first.column):
            first, last = last, first
        merged = join_surrogates(
            lines[first.line][: first.column] + text + lines[last.line][last.column :],
        )
        top = first.line
        if top > 0 and merged.startswith("\n") and lines[top - 1].endswith("\r"):
            # The edit brought a lone \r and a \n together: they are one line end now.
            top -= 1
            merged = lines[top] + merged
        replacement = split_lines(merged)
        if last.line + 1 < len(lines):
            # The tail kept its line end, so what follows it is the next line and not a new one.
            replacement.pop()
        lines[top : last.line + 1] = replacement


def locate(lines: list[str] | tuple[str, ...], point: Point, encoding: PositionEncoding) -> Point:
    """``point`` clamped into ``lines``, its column in characters and never inside a line end."""
    if point.line < 0:
        return Point(0, 0)
    if point.line >= len(lines):
        return Point(len(lines) - 1, len(strip_eol(lines[-1])))
    return Point(point.line, to_index(strip_eol(lines[point.line]), point.column, encoding))
