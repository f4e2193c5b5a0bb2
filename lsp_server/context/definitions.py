"""Source "definitions": signatures of what is used near the cursor, from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsp_server.context.names import identifiers, language_group
from lsp_server.context.piece import Piece, View
from lsp_server.context.tags import Tag
from lsp_server.documents.text import Snapshot
from lsp_server.prompts.fim import ContextFile

# A name with more definitions than this says nothing about which one is meant.
MAX_CANDIDATES = 3
MAX_NAMES = 24
_CONSTRUCTORS = frozenset({"__init__", "constructor", "initialize", "__construct", "new"})


@dataclass(frozen=True)
class Source:
    """A document or file whose definitions are known."""

    uri: str
    path: str
    language_id: str
    tags: tuple[Tag, ...]


@dataclass(frozen=True)
class _Found:
    source: str
    path: str
    tag: Tag


class Definitions:
    """Chooses definitions for one place.

    Args:
        own: the document itself.
        others: other open documents of the workspace.
        lookup: definitions of a name in files of the workspace that are not open.
        members: of a class of that name in the file of a URI.
    """

    def __init__(
        self,
        own: Source,
        others: Sequence[Source],
        lookup: Callable[[str, str], Iterable[tuple[str, str, Tag]]],
        members: Callable[[str, str], Sequence[Tag]],
    ) -> None:
        self._own = own
        self._others = [
            each for each in others if language_group(each.language_id) == language_group(own.language_id)
        ]
        self._lookup, self._members = lookup, members

    def pieces(self, snapshot: Snapshot, line: int, view: View, chars: int) -> list[Piece]:
        """At most about ``chars`` characters, one piece for each file, the most telling file last.

        A name counts for more the nearer it is to the cursor; the cursor's own line does not count, as it
        changes at every key. Names whose definition the window shows are left out.
        """
        shown = {tag.name for tag in self._own.tags if view.first <= tag.first < view.stop}
        chosen: dict[tuple[str, int], _Found] = {}
        left = chars
        for name in _names(snapshot, line, view):
            if name in shown:
                continue
            for found in self._definitions(name, snapshot):
                key = (found.source, found.tag.first)
                outside = found.source != self._own.uri or not view.first <= found.tag.first < view.stop
                cost = len(found.tag.shown) + len(found.tag.container)
                if key not in chosen and outside and cost <= left:
                    left -= cost
                    chosen[key] = found
        files: dict[str, list[_Found]] = {}
        for found in chosen.values():
            files.setdefault(found.source, []).append(found)
        # A dictionary keeps the order of the first name of each file, the nearest one first.
        return [_piece(group) for group in reversed(files.values())]

    def _definitions(self, name: str, snapshot: Snapshot) -> list[_Found]:
        """The definition of a name, with the constructor if it is a class; empty if that is a guess."""
        own = [tag for tag in self._own.tags if tag.name == name]
        if own:
            return self._with_constructor([_Found(self._own.uri, self._own.path, own[0])], self._own.tags)
        found = [
            _Found(source.uri, source.path, tag)
            for source in self._others
            for tag in source.tags
            if tag.name == name
        ]
        known = {each.source for each in found}
        known.update(source.uri for source in self._others)
        found += [
            _Found(uri, path, tag)
            for uri, path, tag in self._lookup(name, snapshot.language_id)
            if uri not in known and uri != self._own.uri
        ]
        if not 0 < len(found) <= MAX_CANDIDATES:
            return []
        best = min(found, key=lambda each: _distance(each.path, self._own.path))
        open_tags = next((each.tags for each in self._others if each.uri == best.source), None)
        tags = self._members(best.source, best.tag.name) if open_tags is None else open_tags
        return self._with_constructor([best], tags)

    def _with_constructor(self, found: list[_Found], tags: Iterable[Tag]) -> list[_Found]:
        (it,) = found
        if it.tag.is_class:
            for tag in tags:
                inside = tag.container_name == it.tag.name and tag is not it.tag
                if inside and (tag.name in _CONSTRUCTORS or tag.name == it.tag.name):
                    return [it, _Found(it.source, it.path, tag)]
        return found


def _names(snapshot: Snapshot, line: int, view: View) -> list[str]:
    """Identifiers near the cursor without those of its own line, the nearest first."""
    numbers = [number for number in range(view.near_first, view.near_stop) if number != line]
    # What is above has been written for what comes now; what is below may be another function.
    numbers.sort(key=lambda number: line - number if number < line else 2 * (number - line))
    names: dict[str, None] = {}
    for number in numbers:
        for name in identifiers(snapshot.line(number)[:400]):
            names.setdefault(name)
    return list(names)[:MAX_NAMES]


def _piece(group: list[_Found]) -> Piece:
    """Definitions of one file in its order, each class named once above its members."""
    group = sorted(group, key=lambda found: found.tag.first)
    headers = {found.tag.name for found in group if found.tag.is_class}
    text, container = "", ""
    for found in group:
        tag = found.tag
        if tag.container and tag.container != container and tag.container_name not in headers:
            text += tag.container
        container = tag.container
        text += tag.shown
    path = group[0].path
    return Piece(
        group[0].source, ContextFile(path, text), group[0].tag.first, max(each.tag.stop for each in group)
    )


def _distance(path: str, other: str) -> tuple[int, str]:
    """Folders between two files; then the name, so that there is one answer."""
    ours, theirs = Path(path).parts[:-1], Path(other).parts[:-1]
    same = 0
    while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
        same += 1
    return len(ours) + len(theirs) - 2 * same, path
