"""What an edit's prompt shows besides the selection: imports, the heads of the enclosing blocks, diagnostics.

By text rules, so that it works in every language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inference.lines import line_columns
from lsp_server.context.secrets import redact
from lsp_server.documents.text import Snapshot
from lsp_server.inline_edit.selection import Selection

IMPORT = re.compile(
    r"(?:import|from\s+[\w.]+\s+c?import|use|using|#\s*include|require|package|const \w+ = require)\b"
)
MAX_IMPORTS, MAX_HEADS, MAX_DIAGNOSTICS = 24, 6, 12
# Lines looked at for imports, and above the selection for the heads of blocks.
TOP_LINES, ABOVE_LINES = 400, 2000
MAX_LINE = 200  # characters


@dataclass(frozen=True)
class Diagnostic:
    """A problem that the client reported: first line in the document, words, and last line if it has more."""

    line: int
    message: str
    last: int = 0

    def within(self, first: int, stop: int) -> bool:
        """Whether it touches the lines ``first`` to ``stop`` (exclusive)."""
        return self.line < stop and max(self.line, self.last) >= first


@dataclass(frozen=True)
class EditContext:
    """Lines of the document around the selection, and problems in it with lines counted from 1 within it."""

    imports: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def context_of(selection: Selection, diagnostics: Sequence[Diagnostic] = ()) -> EditContext:
    """The context of a selection."""
    snapshot = selection.snapshot
    return EditContext(
        imports=tuple(_imports(snapshot, selection.first)),
        heads=tuple(
            snapshot.line(number)[:MAX_LINE] for number in heads_above(snapshot, selection.start)[-MAX_HEADS:]
        ),
        problems=tuple(
            f"line {max(diagnostic.line - selection.first, 0) + 1}: {_words_of(diagnostic)}"
            for diagnostic in diagnostics
            if diagnostic.within(selection.first, selection.stop)
        )[:MAX_DIAGNOSTICS],
    )


def _words_of(diagnostic: Diagnostic) -> str:
    """On one line, and without a secret that it may quote from the document."""
    return redact(" ".join(diagnostic.message.split()))[:MAX_LINE]


def _imports(snapshot: Snapshot, stop: int) -> list[str]:
    found = []
    for number in range(min(stop, TOP_LINES)):
        line = snapshot.line(number)
        if len(line) <= MAX_LINE and IMPORT.match(line):
            found.append(line)
            if len(found) == MAX_IMPORTS:
                break
    return found


def heads_above(snapshot: Snapshot, line: int) -> list[int]:
    """Numbers of the lines above that are indented less and less, in order: what ``line`` stands in."""
    indent = line_columns(snapshot.line(line))
    heads: list[int] = []
    for number in range(line - 1, max(line - 1 - ABOVE_LINES, -1), -1):
        if indent == 0:
            break
        text = snapshot.line(number)
        if text.strip() and line_columns(text) < indent and any(map(str.isalnum, text)):
            indent = line_columns(text)
            heads.append(number)
    return heads[::-1]
