"""Notebooks: the cells around the cursor's, as one text for the model.

Each cell is a document of its own in the store, under its own URI, and requests are about cells. Only what a
prompt is made of is joined: the code cells above and below in the same language, with the cells of prose
among them as comments. A cell of another language, by its identifier or by a cell magic such as ``%%bash``,
is left out, and one with the cursor in it sees only its like.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from lsp_server.context.secrets import RedactedLine
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Point, Snapshot

# Cells further away than so many lines or characters are not joined.
MAX_LINES = 2000
MAX_CHARS = 128 * 1024

# Cell magics of IPython under which the cell stays in the notebook's language.
_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun", "memit", "debug", "mprun", "lprun"})
_MAGIC_LANGUAGES = {
    "bash": "shellscript",
    "sh": "shellscript",
    "script": "shellscript",
    "html": "html",
    "js": "javascript",
    "javascript": "javascript",
    "latex": "latex",
    "markdown": "markdown",
    "perl": "perl",
    "python": "python",
    "python3": "python",
    "r": "r",
    "ruby": "ruby",
    "sql": "sql",
    "svg": "xml",
}
_COMMENTS = {
    **dict.fromkeys(("python", "r", "julia", "ruby", "shellscript", "perl"), "# "),
    **dict.fromkeys(("javascript", "typescript", "java", "scala", "kotlin", "go", "rust", "c", "cpp"), "// "),
    **dict.fromkeys(("csharp", "fsharp", "swift"), "// "),
    **dict.fromkeys(("sql", "lua", "haskell"), "-- "),
}


@dataclass(frozen=True)
class Cell:
    """``code`` is False for a cell of prose."""

    uri: str
    code: bool


class Notebooks:
    """The notebooks the client has open; the texts of their cells are in ``store``."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._cells: dict[str, list[Cell]] = {}
        self._owner: dict[str, str] = {}
        self._prose: dict[str, tuple[Snapshot, str, list[str]]] = {}
        # The last text that was joined: for which cell and what around it, and the lines above that cell.
        self._last: tuple[Snapshot, Hashable, Snapshot, int] | None = None

    def open(self, uri: str, cells: Sequence[Cell]) -> None:
        """Start to follow a notebook; opening an open one replaces it."""
        self.close(uri)
        self._cells[uri] = []
        self.splice(uri, 0, 0, cells)

    def splice(self, uri: str, start: int, delete: int, cells: Sequence[Cell]) -> None:
        """Replace ``delete`` cells from ``start`` on. An unknown notebook is left alone."""
        present = self._cells.get(uri)
        if present is None:
            return
        for cell in present[start : start + delete]:
            self._drop(cell.uri)
        present[start : start + delete] = cells
        self._owner.update((cell.uri, uri) for cell in cells)

    def replace(self, uri: str, cells: Sequence[Cell]) -> None:
        """Take over the kinds of cells that changed."""
        changed = {cell.uri: cell for cell in cells}
        present = self._cells.get(uri, [])
        present[:] = [changed.get(cell.uri, cell) for cell in present]

    def close(self, uri: str) -> list[str]:
        """Forget a notebook; returns the URIs of its cells."""
        cells = self._cells.pop(uri, [])
        for cell in cells:
            self._drop(cell.uri)
        return [cell.uri for cell in cells]

    def cells(self, uri: str) -> list[str]:
        """URIs of a notebook's cells, in order."""
        return [cell.uri for cell in self._cells.get(uri, [])]

    def owner(self, uri: str) -> str:
        """The notebook of a cell; of any other document its own URI."""
        return self._owner.get(uri, uri)

    def around(self, uri: str) -> Hashable:
        """A version of the other cells around a cell and of their order; None for any other document."""
        cells = self._cells.get(self._owner.get(uri, ""))
        if cells is None:
            return None
        return tuple((cell, None if cell.uri == uri else self._state(cell.uri)) for cell in cells)

    def joined(self, snapshot: Snapshot, cursor: Point) -> tuple[Snapshot, Point]:
        """The text around a cell and the cursor in it; any other document as it is.

        The result has the cell's URI and version, and is the same object until something changes. It is
        bounded, so it costs no more in a long notebook.
        """
        cells = self._cells.get(self._owner.get(snapshot.uri, ""))
        if cells is None:
            return snapshot, cursor
        around = self.around(snapshot.uri)
        if self._last is None or self._last[0] is not snapshot or self._last[1] != around:
            self._last = (snapshot, around, *self._join(snapshot, cells))
        _, _, view, above = self._last
        return view, Point(cursor.line + above, cursor.column)

    def forget(self, uri: str) -> None:
        """Drop what is kept of a cell's text, which was closed or must not be read any more."""
        self._prose.pop(uri, None)
        self._last = None

    def _state(self, uri: str) -> tuple[str, int] | None:
        try:
            document = self._store.get(uri)
        except Withheld:
            return None
        return document.language_id, document.version

    def _join(self, snapshot: Snapshot, cells: Sequence[Cell]) -> tuple[Snapshot, int]:
        """The text around a cell, and how many lines of it are above that cell."""
        at = next(number for number, cell in enumerate(cells) if cell.uri == snapshot.uri)
        language = _language(snapshot)
        above: list[str] = []
        for piece in self._near(list(reversed(cells[:at])), language, reverse=True):
            above = piece + above
        below = [line for piece in self._near(cells[at + 1 :], language) for line in ["\n", *piece]]
        own = list(snapshot.lines)
        if below:
            own[-1] = _ended(own[-1])
            below[-1] = below[-1].rstrip("\r\n")
        lines = (*above, *own, *below)
        code = language if language in _MAGIC_LANGUAGES.values() else snapshot.language_id
        view = Snapshot(snapshot.uri, snapshot.version, code, lines, snapshot.eol)
        return view, len(above)

    def _near(self, cells: Sequence[Cell], language: str, reverse: bool = False) -> list[list[str]]:
        """Lines of the cells that go with ``language``, nearest first, each with its line ends; above the
        cursor's cell with an empty line behind."""
        pieces: list[list[str]] = []
        lines = chars = 0
        for cell in cells:
            piece = self._piece(cell, language)
            if not piece:
                continue
            lines += len(piece)
            chars += sum(map(len, piece))
            if lines > MAX_LINES or chars > MAX_CHARS:
                break
            pieces.append([*piece, "\n"] if reverse else piece)
        return pieces

    def _piece(self, cell: Cell, language: str) -> list[str]:
        try:
            snapshot = self._store.get(cell.uri).snapshot()
        except Withheld:
            return []
        if len(snapshot.lines) > MAX_LINES or not any(line.strip() for line in snapshot.lines):
            return []
        if not cell.code:
            return self._comment(snapshot, language)
        if _language(snapshot) != language:
            return []
        lines = list(snapshot.lines)
        if not lines[-1]:
            lines.pop()
        lines[-1] = _ended(lines[-1])
        return lines

    def _comment(self, snapshot: Snapshot, language: str) -> list[str]:
        mark = _COMMENTS.get(language)
        if mark is None:
            return []
        known = self._prose.get(snapshot.uri)
        if known is None or known[0] is not snapshot or known[1] != mark:
            text = [snapshot.line(number).rstrip() for number in range(len(snapshot.lines))]
            while not text[-1]:
                text.pop()
            known = (snapshot, mark, [(mark + line).rstrip() + "\n" for line in text])
            self._prose[snapshot.uri] = known
        return known[2]

    def _drop(self, uri: str) -> None:
        self._owner.pop(uri, None)
        self.forget(uri)


def _language(snapshot: Snapshot) -> str:
    """The language of a cell: that of its cell magic, if it has one that changes it."""
    first = next((line for line in snapshot.lines[:8] if line.strip()), "")
    words = first[2:80].split() if first.startswith("%%") else []
    if not words or words[0] in _TRANSPARENT:
        return snapshot.language_id
    # A magic that we do not know goes with its like only.
    return _MAGIC_LANGUAGES.get(words[0].lower(), first[:2] + words[0])


def _ended(line: str) -> str:
    """The line with a line end."""
    if line.endswith(("\n", "\r")):
        return line
    return RedactedLine.of(line + "\n", line.spans) if isinstance(line, RedactedLine) else line + "\n"
