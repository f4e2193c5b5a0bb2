"""Gathers what a prompt shows beyond the plain window, and keeps it while the user types.

What stands at the begin of a prompt is read again when it changes, with all that follows. So:

- lines of the document itself (`LINE_SOURCES`) are looked for once for each line the cursor is on;
- pieces of other places (`FILE_SOURCES`) stay while the cursor is within `HOLD_LINES` lines of where they
  were gathered; after a pause of `PAUSE_S` seconds without a request, the next line gathers anew.

On one line nothing ever changes, except that a piece goes at once when its file becomes excluded.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lsp_server.completion.options import CompletionOptions
from lsp_server.context.definitions import Definitions, Source
from lsp_server.context.imports import import_lines
from lsp_server.context.piece import Piece, View, view
from lsp_server.context.related import FILE_SOURCES, LINE_SOURCES, NOTHING, KeptLines, Related
from lsp_server.context.ring import MOVED_LINES, Kind, Ring, line_set
from lsp_server.context.scopes import scope_lines
from lsp_server.context.tabs import Tabs
from lsp_server.context.tags import Tag, tags_of
from lsp_server.context.workspace_index import WorkspaceIndex
from lsp_server.context.workspaces import Workspaces, path_of, uri_of
from lsp_server.documents.syntax import SyntaxTree
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.fim import ContextFile

HOLD_LINES = 16
PAUSE_S = 3.0
# Larger documents would be parsed for longer than a completion takes.
MAX_CHARS = 400_000
# Characters a token at most; what does not fit is cut by tokens later.
_CHARS_PER_TOKEN = 5
_MAX_SHOWN, _MAX_NOTED = 64, 32
_FILES, _LINES = frozenset(FILE_SOURCES), frozenset(LINE_SOURCES)


class OpenDocument(Protocol):
    """What is used of `documents.text.Document`."""

    def snapshot(self) -> Snapshot: ...


class OpenDocuments(Protocol):
    """What is used of `documents.store.DocumentStore`: excluded documents are not in it."""

    @property
    def uris(self) -> list[str]: ...

    def get(self, uri: str) -> OpenDocument: ...

    def version(self, uri: str) -> int | None: ...


@dataclass
class _Lines:
    """Lines of the document found for one line of it."""

    key: tuple[object, ...]
    kept: tuple[KeptLines, ...]


@dataclass
class _Files:
    """Pieces gathered at a line; ``asked`` is when and ``line`` where they were used last."""

    key: tuple[object, ...]
    pieces: tuple[Piece, ...]
    anchor: int
    line: int
    asked: float


class ContextGatherer:
    """Lives on the event loop; only the index of the workspace has a thread.

    Tell it what happens to documents, then ask with ``gather``. Telling costs next to nothing: chunks are cut
    and names looked up when something is gathered anew.
    """

    def __init__(
        self,
        documents: OpenDocuments,
        excluded: Callable[[Path], bool] = lambda path: False,
        busy: Callable[[], bool] = lambda: False,
        *,
        background: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            documents: the open ones; a document that must not be stored is not among them.
            excluded: files that must not be read; also called in the index's thread.
            busy: somebody waits for a completion, so that the index rests; called in its thread.
            background: False builds the index at once when it is first needed.
        """
        self._documents, self._excluded, self._busy = documents, excluded, busy
        self._background, self._clock = background, clock
        self._workspaces = Workspaces()
        self._indexes: dict[Path, WorkspaceIndex] = {}
        self._ring, self._tabs = Ring(), Tabs()
        self._trees: dict[str, SyntaxTree] = {}
        self._tags: dict[str, tuple[Snapshot, tuple[Tag, ...]]] = {}
        self._lines: dict[str, _Lines] = {}
        self._files: dict[str, _Files] = {}
        # Where the user was last in each document, the latest last, and what is still to be cut from there.
        self._places: OrderedDict[str, int] = OrderedDict()
        self._noted: list[tuple[str, int, Kind]] = []
        self._shown: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._results: dict[str, Related] = {}
        self._versions = 0
        # The notebook of a cell, whose text is shown with that of the other cells; any other document itself.
        self.owner: Callable[[str], str] = lambda uri: uri
        self._by_uri: tuple[dict[str, Any], ...] = (
            self._trees,
            self._tags,
            self._lines,
            self._files,
            self._results,
        )

    def set_roots(self, roots: list[Path]) -> None:
        """The workspace folders have changed: what was gathered under the old ones is forgotten."""
        if tuple(roots) == self._workspaces.roots:
            return
        self.close()
        self._workspaces.set_roots(roots)

    def adopt(self, index: WorkspaceIndex) -> None:
        """Use an index that was built before, for the folder that it is of."""
        self._indexes[index.root] = index

    def files_of(self, uri: str) -> tuple[ContextFile, ...]:
        """The pieces of other places that the last prompt of a document could show."""
        found = self._results.get(uri)
        return () if found is None else found.files

    def opened(self, uri: str) -> None:
        """A document was opened: the user looks at its begin."""
        self._note(uri, 0)

    def changed(self, uri: str, line: int | None) -> None:
        """A document was edited at ``line``, None for the whole text."""
        if line is not None:
            self._note(uri, line)

    def viewed(self, uri: str, line: int) -> None:
        """The user was seen at a line."""
        self._note(uri, line)

    def saved(self, uri: str) -> None:
        """A file was written."""
        path = path_of(uri)
        root = self._workspaces.root_of(uri)
        if path is not None and root in self._indexes:
            self._indexes[root].changed(path)
        if uri in self._places:
            self._remember(uri, self._places[uri], "recent")

    def closed(self, uri: str) -> None:
        """A document is about to be closed. What was looked at stays known if it is a file."""
        self._cut_chunks()
        self._places.pop(uri, None)
        for known in self._by_uri:
            known.pop(uri, None)
        self._tabs.forget(uri)
        if path_of(uri) is None:
            self._ring.forget(uri)

    def rules_changed(self) -> None:
        """Other files may be excluded now: what is from one of them is forgotten."""
        for uri in self._ring.uris | set(self._tags):
            if self._hidden(uri):
                self._ring.forget(uri)
                self._tabs.forget(uri)
                for known in self._by_uri:
                    known.pop(uri, None)
        self._files.clear()
        self._results.clear()  # so that no suggestion made from them is found again
        self._close_indexes()

    def shown(self, item: str, uri: str, line: int) -> None:
        """A suggestion was sent, which `accepted` may name later."""
        self._shown[item] = (uri, line)
        while len(self._shown) > _MAX_SHOWN:
            self._shown.popitem(last=False)

    def accepted(self, item: str) -> None:
        """The user took a suggestion."""
        place = self._shown.pop(item, None)
        if place is not None:
            self._remember(*place, "accepted")

    def close(self) -> None:
        """End the indexes and forget everything but the folders."""
        self._close_indexes()
        self._ring.clear()
        self._tabs = Tabs()
        self._noted.clear()
        self._places.clear()
        for known in self._by_uri:
            known.clear()

    def gather(
        self, snapshot: Snapshot, cursor: Point, options: CompletionOptions, line: int | None = None
    ) -> Related:
        """What the prompt for ``cursor`` shows beyond its window. See the module for how long it stays.

        Args:
            line: the cursor's in the document itself, where ``snapshot`` shows other cells above it.
        """
        sources = options.context_sources
        if not sources or options.context_tokens <= 0:
            return NOTHING
        uri = snapshot.uri
        kept = self._kept(snapshot, cursor.line, sources) if sources & _LINES else ()
        files: tuple[Piece, ...] = ()
        if sources & _FILES:
            above = 0 if line is None else cursor.line - line
            files = self._pieces(snapshot, cursor.line, options, above)
        self._note(uri, cursor.line if line is None else line)
        before = self._results.get(uri, NOTHING)
        result = Related(tuple(piece.shown for piece in files), kept, before.version)
        if result != before:
            self._versions += 1
            self._results[uri] = result = replace(result, version=self._versions)
        return result

    def _kept(self, snapshot: Snapshot, line: int, sources: frozenset[str]) -> tuple[KeptLines, ...]:
        # Nothing but the cursor's line may differ. Snapshots share the strings of lines that did not change.
        others = (snapshot.lines[:line], snapshot.lines[line + 1 :])
        key = (line, snapshot.language_id, sources & _LINES, others)
        held = self._lines.get(snapshot.uri)
        if held is not None and held.key == key:
            return held.kept
        kept: list[KeptLines] = []
        if line > 0 and sum(map(len, snapshot.lines)) <= MAX_CHARS:
            tree = self._trees.setdefault(snapshot.uri, SyntaxTree()).tree(snapshot)
            if "imports" in sources:
                kept += import_lines(snapshot, line, tree)
            if "scope" in sources:
                kept += scope_lines(snapshot, line, tree)
        found = tuple(sorted(kept, key=lambda each: each.first))
        self._lines[snapshot.uri] = _Lines(key, found)
        return found

    def _pieces(
        self, snapshot: Snapshot, line: int, options: CompletionOptions, above: int
    ) -> tuple[Piece, ...]:
        key = (options.context_sources & _FILES, options.context_tokens, self._workspaces.roots)
        held = self._files.get(snapshot.uri)
        now = self._clock()
        if held is not None and held.key == key and not self._worn(held, line, now):
            held.line, held.asked = line, now
            return held.pieces
        pieces = self._gather_pieces(snapshot, line, options, above)
        self._files[snapshot.uri] = _Files(key, pieces, line, line, now)
        return pieces

    def _worn(self, held: _Files, line: int, now: float) -> bool:
        if any(self._hidden(piece.uri) for piece in held.pieces):
            return True
        if line == held.line:
            return False
        return abs(line - held.anchor) > HOLD_LINES or now - held.asked >= PAUSE_S

    def _gather_pieces(
        self, snapshot: Snapshot, line: int, options: CompletionOptions, above: int
    ) -> tuple[Piece, ...]:
        """``above``: lines of other cells that ``snapshot`` begins with."""
        self._cut_chunks()
        sources = options.context_sources
        asked = [source for source in FILE_SOURCES if source in sources]
        chars = options.context_tokens * _CHARS_PER_TOKEN // len(asked)
        around = view(snapshot.lines, line, options.prompt_tokens - options.context_tokens)
        place = self._workspaces.place_of(snapshot.uri)
        pieces: list[Piece] = []
        # The most telling source chooses first and stands last.
        for source in reversed(asked):
            found: list[Piece] = []
            if source == "definitions":
                found = self._definitions(snapshot, line, around, chars)
            elif source == "tabs":
                others = [(other, self._workspaces.shown_path(other.uri)) for other in self._others(snapshot)]
                found = self._tabs.pieces(snapshot, line, around, others)
            elif source == "recent" or source == "accepted":
                kind: Kind = "recent" if source == "recent" else "accepted"
                found = self._chunks(snapshot, place, around, kind, above)
            new = [
                piece
                for piece in found
                if not self._hidden(piece.uri)
                and not any(known.overlaps(piece.uri, piece.first, piece.stop) for known in pieces)
            ]
            pieces = _within(new, chars) + pieces
        return tuple(pieces)

    def _definitions(self, snapshot: Snapshot, line: int, around: View, chars: int) -> list[Piece]:
        index = self._index_for(snapshot.uri)

        def lookup(name: str, language_id: str) -> list[tuple[str, str, Tag]]:
            if index is None:
                return []
            found = index.lookup(name, language_id)
            return [
                (uri, self._workspaces.shown_path(uri), tag) for path, tag in found for uri in [uri_of(path)]
            ]

        def members(uri: str, container: str) -> list[Tag]:
            path = path_of(uri)
            return [] if index is None or path is None else index.members(path, container)

        others = [self._source(other) for other in self._others(snapshot)]
        chooser = Definitions(self._source(snapshot), others, lookup, members)
        return chooser.pieces(snapshot, line, around, chars)

    def _source(self, snapshot: Snapshot) -> Source:
        known = self._tags.get(snapshot.uri)
        if known is None or known[0] is not snapshot:
            short = sum(map(len, snapshot.lines)) <= MAX_CHARS
            tags = tags_of(snapshot.lf(0, len(snapshot.lines)), snapshot.language_id) if short else ()
            known = self._tags[snapshot.uri] = (snapshot, tags)
        path = self._workspaces.shown_path(snapshot.uri)
        return Source(snapshot.uri, path, snapshot.language_id, known[1])

    def _chunks(self, snapshot: Snapshot, place: str, around: View, kind: Kind, above: int) -> list[Piece]:
        text = line_set(snapshot.lines[around.near_first : around.near_stop])
        pieces: list[Piece] = []
        for chunk in self._ring.chunks(place, kind, text):
            own = chunk.uri == snapshot.uri
            first, stop = (chunk.first + above, chunk.stop + above) if own else (chunk.first, chunk.stop)
            # The window shows it already, and other cells of a notebook too.
            shown = own and first < around.stop and around.first < stop
            if shown or (not own and self.owner(chunk.uri) == self.owner(snapshot.uri)):
                continue
            file = ContextFile(self._workspaces.shown_path(chunk.uri), chunk.text)
            pieces.append(Piece(chunk.uri, file, first, stop))
        return pieces

    def _others(self, snapshot: Snapshot) -> list[Snapshot]:
        """Other open documents of the same workspace, those the user was in last first."""
        place = self._workspaces.place_of(snapshot.uri)
        latest = {uri: number for number, uri in enumerate(self._places)}
        uris = [
            uri
            for uri in self._documents.uris
            if self.owner(uri) != self.owner(snapshot.uri)
            and self._workspaces.place_of(uri) == place
            and not self._hidden(uri)
        ]
        uris.sort(key=lambda uri: (-latest.get(uri, -1), uri))
        return [self._documents.get(uri).snapshot() for uri in uris]

    def _index_for(self, uri: str) -> WorkspaceIndex | None:
        root = self._workspaces.root_of(uri)
        if root is None:
            return None
        if root not in self._indexes:
            # A folder inside another one is a workspace of its own.
            inner = [
                other for other in self._workspaces.roots if other != root and other.is_relative_to(root)
            ]

            def excluded(path: Path) -> bool:
                return any(path.is_relative_to(other) for other in inner) or self._excluded(path)

            index = self._indexes[root] = WorkspaceIndex(root, excluded, self._busy)
            if self._background:
                index.start()
            else:
                index.build()
        return self._indexes[root]

    def _hidden(self, uri: str) -> bool:
        path = path_of(uri)
        return path is not None and self._excluded(path)

    def _close_indexes(self) -> None:
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()

    def _note(self, uri: str, line: int) -> None:
        """The user is at a line; a place that they left for one far away is remembered."""
        latest = next(reversed(self._places), uri)
        # A cell is shown with the other cells as it is, and one works on several at once.
        if latest != uri and self.owner(latest) == latest:
            self._remember(latest, self._places[latest], "recent")
        before = self._places.pop(uri, line)
        if abs(before - line) > MOVED_LINES:
            self._remember(uri, before, "recent")
            before = line
        self._places[uri] = before

    def _remember(self, uri: str, line: int, kind: Kind) -> None:
        if (uri, line, kind) not in self._noted:
            self._noted.append((uri, line, kind))
        del self._noted[:-_MAX_NOTED]

    def _cut_chunks(self) -> None:
        for uri, line, kind in self._noted:
            if self._documents.version(uri) is not None and not self._hidden(uri):
                snapshot = self._documents.get(uri).snapshot()
                self._ring.add(snapshot, line, self._workspaces.place_of(uri), kind)
        self._noted.clear()


def _within(pieces: list[Piece], chars: int) -> list[Piece]:
    """The last pieces that have about so many characters together, one at least."""
    kept: list[Piece] = []
    for piece in reversed(pieces):
        chars -= len(piece.shown.text)
        if kept and chars < 0:
            break
        kept.append(piece)
    return kept[::-1]
