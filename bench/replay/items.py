"""What is typed again: pieces taken out of real source files."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bench.places import source_files
from bench.records import ItemKind
from bench.replay.pieces import MAX_CHARS, Piece, header_language, pieces
from lsp_server.documents.languages import language_of

MAX_FILE_BYTES = 60_000
KINDS: tuple[ItemKind, ...] = get_args(ItemKind)


@dataclass(frozen=True)
class ReplayItem:
    """A file with a gap at the cursor: ``before + removed + after`` is the file, ``removed`` is missing.

    Line ends are ``\\n``. ``removed`` begins and ends with something to see, except that the rest of a
    line may begin with blanks, so the cursor stands:

    - "body" of a function, "block" of an if, for, while, with, try and the like: on an indented line
      that is otherwise blank, behind the header (and its docstring or comment); a closing bracket stands
      on the next line;
    - "line", one whole statement: on an indented line that is otherwise blank;
    - "rest-of-line": inside a line whose rest is missing.

    Attributes:
        index: in its list, from 0.
        path: with ``/``, relative, beginning with the name of the corpus; names no file on disk.
        language: an LSP language identifier.
    """

    index: int
    kind: ItemKind
    path: str
    language: str
    before: str
    removed: str
    after: str

    @property
    def original(self) -> str:
        """The file as it was."""
        return self.before + self.removed + self.after


def sample_items(
    root: Path, count: int, seed: int, name: str, max_chars: int = MAX_CHARS
) -> list[ReplayItem]:
    """``count`` items from the files below ``root``, or as many as there are, in random order.

    As many of each kind where the files have them; from different files as far as possible, from different
    functions always; no two overlap. The same for the same files, seed and name.

    Args:
        name: of the corpus; becomes the first folder of each path.
        max_chars: longer pieces are not removed.
    """
    generator = random.Random(f"{seed} {name}")
    files = [path for path in source_files(root) if path.stat().st_size <= MAX_FILE_BYTES]
    generator.shuffle(files)
    chosen = _Choice(_Reader(root, seed, name, max_chars), files, count, generator).choose()
    generator.shuffle(chosen)
    return [file.item(index, piece) for index, (file, piece) in enumerate(chosen)]


@dataclass(frozen=True)
class _File:
    path: str
    language: str
    text: str
    pieces: list[Piece]

    def item(self, index: int, piece: Piece) -> ReplayItem:
        return ReplayItem(
            index,
            piece.kind,
            self.path,
            self.language,
            self.text[: piece.start],
            self.text[piece.start : piece.end],
            self.text[piece.end :],
        )

    def without(self, taken: Piece) -> _File:
        """The file with the pieces that may still be taken after ``taken``."""
        left = [
            piece
            for piece in self.pieces
            if piece.function != taken.function and (piece.end <= taken.start or piece.start >= taken.end)
        ]
        return _File(self.path, self.language, self.text, left)


@dataclass(frozen=True)
class _Reader:
    root: Path
    seed: int
    name: str
    max_chars: int

    def read(self, path: Path) -> _File | None:
        """A file and its pieces, None if it is no text with ordinary line ends or has no pieces."""
        try:
            text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError):
            return None
        if "\r" in text:
            return None
        relative = f"{self.name}/{path.relative_to(self.root).as_posix()}"
        language = header_language(text) if path.suffix == ".h" else language_of(path)
        found = pieces(text, language, random.Random(f"{self.seed} {relative}"))
        short = [piece for piece in found if piece.end - piece.start <= self.max_chars]
        return _File(relative, language, text, short) if short else None


class _Choice:
    """Goes round the files and takes from each the kind that is needed most."""

    def __init__(self, reader: _Reader, paths: list[Path], count: int, generator: random.Random) -> None:
        self._reader, self._paths, self._count = reader, paths, count
        self._generator = generator
        self._files: dict[Path, _File | None] = {}
        self._needed = Counter({kind: count // len(KINDS) for kind in KINDS})
        self._needed.update(generator.sample(KINDS, count % len(KINDS)))

    def choose(self) -> list[tuple[_File, Piece]]:
        chosen: list[tuple[_File, Piece]] = []
        for any_kind in (False, True):
            progress = True
            while progress and len(chosen) < self._count:
                before = len(chosen)
                for path in self._paths:
                    if len(chosen) < self._count:
                        chosen += self._take(path, any_kind)
                progress = len(chosen) > before
        return chosen

    def _take(self, path: Path, any_kind: bool) -> list[tuple[_File, Piece]]:
        """At most one piece of a file."""
        if path not in self._files:
            self._files[path] = self._reader.read(path)
        file = self._files[path]
        if file is None:
            return []
        offered = {piece.kind for piece in file.pieces}
        wanted = [kind for kind in KINDS if kind in offered and (any_kind or self._needed[kind] > 0)]
        if not wanted:
            return []
        most = max(self._needed[kind] for kind in wanted)
        kind = self._generator.choice([kind for kind in wanted if self._needed[kind] == most])
        piece = self._generator.choice([piece for piece in file.pieces if piece.kind == kind])
        self._needed[kind] -= 1
        self._files[path] = file.without(piece)
        return [(file, piece)]
