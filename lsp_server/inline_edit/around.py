"""What stands around a selection, as far as an answer may repeat it: by text rules, so in every language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from inference.lines import line_columns
from inference.stops import CLOSERS
from lsp_server.documents.languages import canonical
from lsp_server.inline_edit.context import ABOVE_LINES, IMPORT, TOP_LINES, heads_above
from lsp_server.inline_edit.selection import Selection

_BELOW = 200  # lines looked at
_REQUIRE = re.compile(r"(?:const|let|var)\b.*=\s*require\(|require(?:_relative)?[\s(]")
_COMMENT = re.compile(r"//|#(?!\s*include\b)|--|/?\*|@\w")
_WORD = re.compile(r"[^\W\d]\w*")
# Heads of blocks that may well stand in a block of their own kind.
_COMMON = frozenset(
    {"try", "else", "finally", "do", "loop", "unsafe", "begin", "then", "default", "while", "true", "True"}
    | {"return", "async", "function", "func", "fn", "new"}
)
# Tags, and views with nothing but their name, stand in others of their kind.
_NESTS = re.compile(r"<|[\w.]+\s*[{(\[]?$")
# A definition, up to its name.
DEFINES = re.compile(
    r"(?:\w+ )*(?:def|defp|defmodule|class|function|func|fn|fun|sub|proc|module|struct|interface)\b"
    r"\s*(?:\([^()]*\)\s*)?[\w.]+"
)
# Languages that take imports at the top of a file only.
_TOP_ONLY = frozenset(
    {"c", "cpp", "go", "java", "csharp", "kotlin", "php", "swift"}
    | {"javascript", "javascriptreact", "typescript", "typescriptreact"}
)


@dataclass(frozen=True)
class Head:
    """The first line of something that the selection stands in.

    Attributes:
        number: of the line in the document.
        sure: it would not stand in itself: an answer that begins with it repeats it.
    """

    number: int
    text: str
    columns: int
    sure: bool


class Around:
    """The document above and below a selection. All texts are without the blanks around them."""

    def __init__(self, selection: Selection, nests: bool = False) -> None:
        """``nests``: blocks like those around may be wanted inside; definitions still are not."""
        snapshot = selection.snapshot
        self._language = canonical(snapshot.language_id)
        self.own = frozenset(line.strip() for line in selection.lines if wordy(line))
        filled = [line for line in selection.lines if line.strip()]
        self.first = filled[0].strip()
        columns = line_columns(filled[0])
        self.fewest = min(map(line_columns, filled))
        # Its first line is indented as little as any other.
        self.flush = columns == self.fewest
        self.heads: list[Head] = []
        for number in heads_above(snapshot, selection.start):
            line = snapshot.line(number)
            if line.strip()[0] in CLOSERS:
                # The end of a signature of several lines, which begins above.
                opener = _opener(selection, number)
                self.heads += [] if opener is None else [_head(selection, opener, nests)]
            self.heads.append(_head(selection, number, nests))
        first = max(0, selection.first - ABOVE_LINES)
        self._above = [
            (number, text)
            for number in range(first, selection.first)
            if (text := snapshot.line(number).strip())
        ]
        self._imports = frozenset(_imports(selection)) - self.own
        stop = min(len(snapshot.lines), selection.stop + _BELOW)
        # With the side of the selection's first line that each begins on.
        self.below = [
            (text, side(line_columns(line), columns))
            for line in map(snapshot.line, range(selection.stop, stop))
            if (text := line.strip())
        ]

    def find(self, text: str, last: int | None) -> int | None:
        """The line above that an answer's line repeats; None: it does not.

        Args:
            last: the line that the answer's line before was found at, None if it was not found. The answer
                must begin with something that the selection stands in, and go on from there.
        """
        following = next((place for place in self._above if last is not None and place[0] > last), None)
        if following is not None and following[1] == text and text != self.first:
            return following[0]
        if text in self.own or not wordy(text):
            return None
        head = next(
            (
                head.number
                for head in self.heads
                if head.text == text and (head.sure if last is None else head.number > last)
            ),
            None,
        )
        if head is not None or last is None:
            return head
        return next((number for number, above in self._above if number > last and above == text), None)

    def head_at(self, number: int) -> Head | None:
        """The head that begins on a line."""
        return next((head for head in self.heads if head.number == number), None)

    def has_import(self, line: str) -> bool:
        """Whether the file has this import, or this line of a list of imports, and the selection has not."""
        return line.strip() in self._imports

    def has(self, text: str) -> bool:
        """Whether this line stands above."""
        return any(above == text for _, above in self._above)

    def takes_import(self, line: str) -> bool:
        """Whether an import may stand in a block."""
        return self._language not in _TOP_ONLY or _REQUIRE.match(line) is not None


def is_import(line: str) -> bool:
    """Whether a line imports something: at the left margin, as in a file."""
    return IMPORT.match(line) is not None or _REQUIRE.match(line) is not None


def opens_imports(line: str) -> bool:
    """Whether an import goes on below, up to a line that begins with a bracket."""
    return line.rstrip().endswith(("(", "{"))


def says_about(line: str) -> bool:
    """Whether a line is a comment or a decorator: it belongs to what follows."""
    return _COMMENT.match(line.strip()) is not None


def wordy(line: str) -> bool:
    """Whether a line has a letter or digit."""
    return any(map(str.isalnum, line))


def side(columns: int, of: int) -> int:
    """1 if a line is indented further than another, -1 if less, 0 if as far."""
    return (columns > of) - (columns < of)


def words(line: str) -> set[str]:
    """The names and keywords of a line."""
    return set(_WORD.findall(line))


def _head(selection: Selection, number: int, nests: bool) -> Head:
    line = selection.snapshot.line(number)
    text = line.strip()
    sure = DEFINES.match(text) is not None or not (nests or _NESTS.match(text) or words(line) <= _COMMON)
    return Head(number, text, line_columns(line), sure)


def _imports(selection: Selection) -> Iterator[str]:
    """The lines of the imports above, without the closing brackets of lists."""
    listed = False
    for number in range(min(selection.first, TOP_LINES)):
        line = selection.snapshot.line(number)
        if listed:
            listed = line.strip()[:1] not in CLOSERS
            if listed:
                yield line.strip()
        elif is_import(line):
            listed = opens_imports(line)
            yield line.strip()


def _opener(selection: Selection, number: int) -> int | None:
    snapshot = selection.snapshot
    columns = line_columns(snapshot.line(number))
    for above in range(number - 1, max(number - 1 - _BELOW, -1), -1):
        line = snapshot.line(above)
        if line.strip() and line_columns(line) <= columns:
            return above if line_columns(line) == columns and line.strip()[0] not in CLOSERS else None
    return None
