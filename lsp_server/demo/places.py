"""The places of the demo: real spots in Draftline's own source files, with some text taken out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import inference
import lsp_server
from lsp_server.documents.languages import language_of
from lsp_server.documents.text import Point, Snapshot


@dataclass(frozen=True)
class Spot:
    """Attributes:
    title: what kind of place it is.
    file: path below the folder of the packages.
    before: text right before the cursor, long enough to occur once together with ``removed``.
    removed: what stands there in the file, and what a user would be about to type.
    """

    title: str
    file: str
    before: str
    removed: str


@dataclass(frozen=True)
class Place:
    """A spot found in its file: the document without the removed text, and the cursor."""

    spot: Spot
    snapshot: Snapshot
    cursor: Point

    def typed(self, text: str) -> Place:
        """The same place after the user typed ``text``, which must not hold a line end."""
        number, column = self.cursor.line, self.cursor.column
        line = self.snapshot.lines[number]
        lines = list(self.snapshot.lines)
        lines[number] = line[:column] + text + line[column:]
        old = self.snapshot
        changed = Snapshot(old.uri, old.version + 1, old.language_id, tuple(lines), old.eol)
        return Place(self.spot, changed, Point(number, column + len(text)))


SPOTS = (
    Spot(
        "body of a function",
        "lsp_server/protocol.py",
        "        if self.fraction is not None:\n            ",
        'params["fraction"] = self.fraction\n'
        "        if self.next_step:\n"
        '            params["nextStep"] = self.next_step\n'
        "        if self.uri:\n"
        '            params["uri"] = self.uri',
    ),
    Spot(
        "arguments of a call",
        "lsp_server/status.py",
        "state=self._engine.state.value,\n                ",
        "message=words,\n"
        "                reason=reason,\n"
        "                fraction=self._engine.fraction,\n"
        "                next_step=self._engine.next_step,\n"
        "                uri=uri,",
    ),
    Spot(
        "a block",
        "lsp_server/context/exclusions.py",
        "        known = self._files.get(file)\n        ",
        "if known is not None and known[:2] == stamp:\n            return known[2]",
    ),
    Spot(
        "middle of a line",
        "inference/weights/verify.py",
        '{"path": str(path), "size": status.st_size, ',
        '"mtime_ns": status.st_mtime_ns, "sha256": sha256',
    ),
    Spot(
        "inside a call",
        "lsp_server/completion/suggestions.py",
        "        entries.insert(",
        "0, shown",
    ),
)


def places() -> Iterator[Place]:
    """The spots as found in the installed packages; a spot whose file has changed is left out."""
    for spot in SPOTS:
        place = find(spot)
        if place is not None:
            yield place


def path_of(spot: Spot) -> Path:
    """The spot's file, wherever the packages are installed."""
    package, _, rest = spot.file.partition("/")
    module = {"inference": inference, "lsp_server": lsp_server}[package]
    assert module.__file__ is not None
    return Path(module.__file__).parent / rest


def find(spot: Spot) -> Place | None:
    """The place of a spot, None if the file does not hold it exactly once."""
    path = path_of(spot)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    if text.count(spot.before + spot.removed) != 1:
        return None
    at = text.index(spot.before + spot.removed) + len(spot.before)
    text = text[:at] + text[at + len(spot.removed) :]
    line = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1)
    snapshot = Snapshot.of(text, uri=path.resolve().as_uri(), language_id=language_of(path))
    return Place(spot, snapshot, Point(line, column))
