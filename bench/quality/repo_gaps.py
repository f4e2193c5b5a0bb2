"""The set "repo": gaps in real files that use names which other files of the same folder define.

No tests are run: an answer is compared with what stood there. What a user would have open and would have
looked at is made up, from the seed: files that define names used near the gap, and neighbours of the file.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from bench.places import source_files
from bench.quality.datasets import InfillTask
from bench.replay.pieces import Piece, header_language, pieces
from inference.errors import DraftlineError
from lsp_server.completion.options import CompletionOptions
from lsp_server.context.exclusions import Exclusions
from lsp_server.context.gather import ContextGatherer
from lsp_server.context.names import identifiers
from lsp_server.context.related import NOTHING, Related
from lsp_server.context.workspace_index import WorkspaceIndex
from lsp_server.context.workspaces import uri_of
from lsp_server.documents.languages import language_of
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Point

MAX_FILE_BYTES = 100_000
# A name that more files define says little about which one is meant.
_MAX_DEFINITIONS = 3
# Gaps further down are preferred, where the window no longer reaches the file's begin.
_DEEP = 3500
_NEAR = 1500
_OPEN_DEFINING, _OPEN_NEIGHBOURS = 2, 2
_ROUNDS = 5
_KINDS = ("line", "rest-of-line")


class NoGaps(DraftlineError):
    """A folder has no file that uses another one's names."""

    code = "no-gaps"


@dataclass(frozen=True)
class RepoTask(InfillTask):
    """A gap in a file among others; it has no tests.

    Attributes:
        path: of the file; root: the folder that is the workspace.
        language: an LSP language identifier.
        opened: other files that are open, each with the line that was looked at.
        seen: lines of the file itself that were looked at before.
    """

    root: Path
    path: Path
    language: str
    opened: tuple[tuple[Path, int], ...]
    seen: tuple[int, ...]


def load_repo(root: Path, count: int, seed: int) -> list[RepoTask]:
    """``count`` gaps from the files below ``root``, or as many as there are, from different files where
    possible; whole lines and rests of lines by turns. The same for the same files and seed.

    Raises:
        NoGaps
    """
    root = root.resolve()
    world = _World(root, seed)
    files = [path for path in source_files(root) if path.stat().st_size <= MAX_FILE_BYTES]
    random.Random(f"{seed} {root.name}").shuffle(files)
    tasks: dict[str, RepoTask] = {}
    for round in range(_ROUNDS):
        for path in files:
            if len(tasks) == count:
                return list(tasks.values())
            # The other kind where a file has none of this one.
            kinds = _KINDS if len(tasks) % 2 == 0 else _KINDS[::-1]
            generator = random.Random(f"{seed} {path.relative_to(root)} {round}")
            task = world.task(path, kinds[0], generator) or world.task(path, kinds[1], generator)
            if task is not None:
                tasks.setdefault(task.id, task)
    if not tasks:
        raise NoGaps(
            f"No file below {root} uses a name that another file defines.", "Choose another --repo PATH."
        )
    return list(tasks.values())


class RepoContext:
    """What is gathered for gaps. One index for each folder, everything else new for each gap."""

    def __init__(self) -> None:
        self._indexes: dict[Path, WorkspaceIndex] = {}

    def gather(self, task: RepoTask, options: CompletionOptions) -> Related:
        """What the server would show with the task's files open and looked at."""
        if not options.context_sources:
            return NOTHING
        store = DocumentStore()
        exclusions = _exclusions(task.root)
        gatherer = ContextGatherer(store, exclusions.excludes)
        gatherer.set_roots([task.root])
        gatherer.adopt(self._index(task.root))
        for path, line in task.opened:
            store.open(uri_of(path), 1, language_of(path), _read(path) or "")
            gatherer.opened(uri_of(path))
            gatherer.viewed(uri_of(path), line)
        uri = uri_of(task.path)
        store.open(uri, 1, task.language, task.prompt + task.suffix)
        for line in task.seen:
            gatherer.viewed(uri, line)
        before = task.prompt.split("\n")
        cursor = Point(len(before) - 1, len(before[-1]))
        return gatherer.gather(store.get(uri).snapshot(), cursor, options)

    def _index(self, root: Path) -> WorkspaceIndex:
        if root not in self._indexes:
            self._indexes[root] = _index_of(root)
        return self._indexes[root]


class _World:
    def __init__(self, root: Path, seed: int) -> None:
        self._root, self._seed = root, seed
        self._index = _index_of(root)

    def task(self, path: Path, kind: str, generator: random.Random) -> RepoTask | None:
        """A gap of a kind in a file, None if it has none."""
        text = _read(path)
        if text is None:
            return None
        language = header_language(text) if path.suffix == ".h" else language_of(path)
        fitting = [
            piece
            for piece in pieces(text, language, generator)
            if piece.kind == kind and self._defining(text[piece.start : piece.end], path, language)
        ]
        deep = [piece for piece in fitting if piece.start > _DEEP]
        if not fitting:
            return None
        return self._made(path, text, language, generator.choice(deep or fitting), generator)

    def _made(self, path: Path, text: str, language: str, piece: Piece, generator: random.Random) -> RepoTask:
        name = path.relative_to(self._root).as_posix()
        around = text[max(0, piece.start - _NEAR) : piece.start] + text[piece.end : piece.end + _NEAR]
        defining = sorted(set(self._defining(around, path, language)))
        generator.shuffle(defining)
        neighbours = [
            other
            for other in sorted(path.parent.iterdir())
            if other.is_file() and other.suffix == path.suffix and other != path and other not in defining
        ]
        generator.shuffle(neighbours)
        chosen = [*neighbours[:_OPEN_NEIGHBOURS], *defining[:_OPEN_DEFINING]]
        opened = []
        for other in chosen:
            if not _exclusions(self._root).excludes(other) and (there := _read(other)) is not None:
                opened.append((other, generator.randrange(there.count("\n") + 1)))
        line = text.count("\n", 0, piece.start)
        seen = tuple(generator.randrange(text.count("\n") + 1) for _ in range(2))
        return RepoTask(
            id=f"{self._root.name}/{name}:{line + 1}:{piece.kind}",
            prompt=text[: piece.start],
            suffix=text[piece.end :],
            middle=text[piece.start : piece.end],
            test="",
            entry_point="",
            root=self._root,
            path=path,
            language=language,
            opened=tuple(opened),
            seen=seen,
        )

    def _defining(self, text: str, path: Path, language: str) -> list[Path]:
        """Other files that define a name which this text uses and its own file does not define."""
        found = []
        for name in dict.fromkeys(identifiers(text)):
            paths = {place for place, _ in self._index.lookup(name, language)}
            if path not in paths and 0 < len(paths) <= _MAX_DEFINITIONS:
                found += sorted(paths)
        return found


def _index_of(root: Path) -> WorkspaceIndex:
    index = WorkspaceIndex(root, _exclusions(root).excludes)
    index.build()
    return index


def _exclusions(root: Path) -> Exclusions:
    exclusions = Exclusions()
    exclusions.set_roots([root])
    return exclusions


def _read(path: Path) -> str | None:
    """The text with ``\\n`` line ends, None if it is none."""
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\r" in text else text
