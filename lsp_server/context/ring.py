"""Sources "recent" and "accepted": chunks that were edited, looked at or accepted lately.

After llama.vim: a ring of chunks, taken when the cursor has moved far, where a chunk takes the place of one
that says nearly the same, and chunks that are much like the text at the cursor are not shown, as they make
a model repeat what is there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from lsp_server.context.names import jaccard
from lsp_server.documents.text import Snapshot

Kind = Literal["recent", "accepted"]

CHUNKS = 16
CHUNK_LINES = 24
# Chunks are taken when the cursor has moved so many lines.
MOVED_LINES = 32
_SAME, _TOO_SIMILAR = 0.9, 0.5
_LONGEST_LINE = 400


@dataclass(frozen=True)
class Chunk:
    """Some lines of a document as they were.

    Attributes:
        place: the workspace, which it never leaves.
        words: of what the similarity is taken: its lines, stripped.
    """

    uri: str
    place: str
    kind: Kind
    first: int
    text: str
    words: frozenset[str]

    @property
    def stop(self) -> int:
        """The line behind it."""
        return self.first + self.text.count("\n")


def line_set(lines: tuple[str, ...]) -> frozenset[str]:
    """The lines that say something, however indented."""
    return frozenset(line.strip() for line in lines if len(line.strip()) > 1)


class Ring:
    """The latest chunks, oldest first."""

    def __init__(self, size: int = CHUNKS) -> None:
        self._chunks: deque[Chunk] = deque(maxlen=size)

    def add(self, snapshot: Snapshot, line: int, place: str, kind: Kind) -> None:
        """Take the lines around ``line``."""
        first = max(0, min(line - CHUNK_LINES // 2, len(snapshot.lines) - CHUNK_LINES))
        stop = min(len(snapshot.lines), first + CHUNK_LINES)
        lines = snapshot.lines[first:stop]
        words = line_set(lines)
        if len(words) < 3 or any(len(line) > _LONGEST_LINE for line in lines):
            return
        text = snapshot.lf(first, stop)
        chunk = Chunk(snapshot.uri, place, kind, first, text if text.endswith("\n") else text + "\n", words)
        # Each kind for itself, as one of the two may be switched off.
        alike = [
            each
            for each in self._chunks
            if (each.place, each.kind) == (place, kind) and jaccard(each.words, words) > _SAME
        ]
        for each in alike:
            self._chunks.remove(each)
        self._chunks.append(chunk)

    def chunks(self, place: str, kind: Kind, around: frozenset[str]) -> list[Chunk]:
        """Chunks of a workspace that are not too similar to the lines ``around`` the cursor, oldest first."""
        return [
            each
            for each in self._chunks
            if each.place == place and each.kind == kind and not _alike(each.words, around)
        ]

    def forget(self, uri: str) -> None:
        """Drop what is from a document."""
        kept = [each for each in self._chunks if each.uri != uri]
        self._chunks.clear()
        self._chunks.extend(kept)

    @property
    def uris(self) -> set[str]:
        """Documents that something is from."""
        return {each.uri for each in self._chunks}

    def clear(self) -> None:
        """Drop everything."""
        self._chunks.clear()

    def __len__(self) -> int:
        return len(self._chunks)


def _alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Dice's coefficient, as llama.vim has it: a chunk is shorter than the text at the cursor."""
    total = len(first) + len(second)
    return total > 0 and 2 * len(first & second) / total > _TOO_SIMILAR
