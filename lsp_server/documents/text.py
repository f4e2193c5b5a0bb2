"""One open document: lines edited in place, and immutable snapshots for requests.

The text as the user wrote it never leaves this module: snapshots, the only way to read a document, have the
characters of secrets replaced (context/secrets.py). So nothing that is made of a snapshot, be it a prompt, an
index or a log, has to think of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lsp_server.context.secrets import (
    KEY_LINES,
    LONG_LINE,
    has_private_key,
    inside,
    redact_edited,
    redact_lines,
    secrets_in,
)
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
    """The text of a document at one version, secrets replaced.

    Attributes:
        lines: with their line ends; the last one has none. Never empty. Snapshots share the strings of
            lines that did not change.
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
        lines = tuple(redact_lines(split_lines(join_surrogates(text))))
        return cls(uri, version, language_id, lines, dominant_eol(lines))

    def line(self, number: int) -> str:
        """Line ``number`` without its line end."""
        return strip_eol(self.lines[number])

    def locate(self, point: Point, encoding: PositionEncoding) -> Point:
        """``point`` clamped into the text, its column in characters."""
        return locate(self.lines, point, encoding)

    def in_secret(self, place: Point) -> bool:
        """Whether ``place`` (column in characters) is within a secret or touches it."""
        return inside(self.lines[place.line], place.column)

    def lf(self, first: int, stop: int) -> str:
        """Lines ``first`` to ``stop`` (exclusive) with ``\\n`` as line ends, as the model sees them."""
        return "".join(map(to_lf, self.lines[first:stop]))


class Document:
    """A text under edit. Not thread-safe: the event loop owns it, requests take snapshots.

    An edit costs the lines it touches plus moving the pointers behind them, not the text.

    Attributes:
        size: characters.
        secrets: those that are replaced in snapshots.
        holds_key: a private key is in the text, which must not be read any more.
        edited_line: where the last edit ended.
    """

    def __init__(self, uri: str, version: int, language_id: str, text: str) -> None:
        self.uri = uri
        self.version = version
        self.language_id = language_id
        self.size = 0
        self.secrets = 0
        self.holds_key = False
        self.edited_line = 0
        self._lines: list[str] = []
        self._safe: list[str] = []
        self._set(text)
        self._snapshot: Snapshot | None = None

    def apply(self, version: int, changes: Iterable[Change], encoding: PositionEncoding) -> None:
        """Apply the changes of one ``didChange`` in order; positions out of range clamp."""
        for change in changes:
            if change.start is None or change.end is None:
                self._set(change.text)
            else:
                self._replace(change.start, change.end, change.text, encoding)
        self.version = version
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """The current text; the same object until the next edit."""
        if self._snapshot is None:
            lines = tuple(self._safe)
            self._snapshot = Snapshot(self.uri, self.version, self.language_id, lines, dominant_eol(lines))
        return self._snapshot

    def _set(self, text: str) -> None:
        lines = split_lines(join_surrogates(text))
        # Some clients send the whole text at each key; a line that was there need not be looked at again.
        known = dict(zip(self._lines, self._safe, strict=True))
        new = [line for line in lines if line not in known]
        known.update(zip(new, redact_lines(new), strict=True))
        self._safe = [known[line] for line in lines]
        self._lines = lines
        self.size = sum(map(len, lines))
        self.secrets = sum(map(secrets_in, self._safe))
        self.holds_key = has_private_key(lines)
        self.edited_line = min(self.edited_line, len(lines) - 1)

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
        if len(replacement) == 1 and len(merged) > LONG_LINE and top == first.line:
            # One more on each side: joined halves of a surrogate pair are shorter.
            begin, stop = max(0, first.column - 1), last.column + 1
            safe = [redact_edited(merged, self._safe[top], begin, self._safe[last.line], stop)]
        else:
            safe = redact_lines(replacement)
        replaced = slice(top, last.line + 1)
        self.size += sum(map(len, replacement)) - sum(map(len, lines[replaced]))
        self.secrets += sum(map(secrets_in, safe)) - sum(map(secrets_in, self._safe[replaced]))
        lines[replaced] = replacement
        self._safe[replaced] = safe
        self.edited_line = top + len(replacement) - 1
        if has_private_key(lines, max(0, top - KEY_LINES), top + len(replacement)):
            self.holds_key = True


def locate(lines: list[str] | tuple[str, ...], point: Point, encoding: PositionEncoding) -> Point:
    """``point`` clamped into ``lines``, its column in characters and never inside a line end."""
    if point.line < 0:
        return Point(0, 0)
    if point.line >= len(lines):
        return Point(len(lines) - 1, len(strip_eol(lines[-1])))
    return Point(point.line, to_index(strip_eol(lines[point.line]), point.column, encoding))
