"""Source "tabs": the parts of other open documents that are most like the text at the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from lsp_server.context.names import identifier_set, jaccard, language_group
from lsp_server.context.piece import Piece, View
from lsp_server.documents.text import Snapshot
from lsp_server.prompts.fim import ContextFile

WINDOW_LINES, STEP = 30, 15
MAX_DOCUMENTS = 20
MAX_LINES = 5000
# With less in common it is not about the same.
LEAST_SIMILAR = 0.1
_MOST_PIECES = 4
_LONGEST_LINE = 400

_Windows = tuple[tuple[int, frozenset[str]], ...]


class Tabs:
    """Remembers the identifiers of documents that did not change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Snapshot, _Windows]] = {}

    def pieces(
        self, snapshot: Snapshot, line: int, view: View, others: Sequence[tuple[Snapshot, str]]
    ) -> list[Piece]:
        """The best window of each of some documents, the most similar last.

        Args:
            others: open documents and their paths, those looked at last first.
        """
        near = (*snapshot.lines[view.near_first : line], *snapshot.lines[line + 1 : view.near_stop])
        here = identifier_set(near)
        found: list[tuple[float, Piece]] = []
        group = language_group(snapshot.language_id)
        for other, path in others[:MAX_DOCUMENTS]:
            if language_group(other.language_id) != group:
                continue
            first, similar = max(
                ((first, jaccard(here, names)) for first, names in self._windows(other)),
                key=lambda each: each[1],
                default=(0, 0.0),
            )
            if similar >= LEAST_SIMILAR:
                stop = min(len(other.lines), first + WINDOW_LINES)
                text = other.lf(first, stop)
                shown = ContextFile(path, text if text.endswith("\n") else text + "\n")
                found.append((similar, Piece(other.uri, shown, first, stop)))
        found.sort(key=lambda each: (each[0], each[1].shown.path))
        return [piece for _, piece in found[-_MOST_PIECES:]]

    def forget(self, uri: str) -> None:
        """Drop what is from a document."""
        self._known.pop(uri, None)

    def _windows(self, snapshot: Snapshot) -> _Windows:
        known = self._known.get(snapshot.uri)
        if known is None or known[0] is not snapshot:
            known = self._known[snapshot.uri] = (snapshot, tuple(_windows_of(snapshot)))
        return known[1]


def _windows_of(snapshot: Snapshot) -> list[tuple[int, frozenset[str]]]:
    lines = snapshot.lines[:MAX_LINES]
    starts = range(0, max(1, len(lines) - STEP), STEP)
    return [
        (first, identifier_set(line[:_LONGEST_LINE] for line in lines[first : first + WINDOW_LINES]))
        for first in starts
    ]
