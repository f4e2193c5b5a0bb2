"""What takes a typist away from the gap: a look at another place, and a line added further up."""

from __future__ import annotations

import random
from dataclasses import dataclass

from bench.replay.indentation import leading_blanks
from bench.replay.items import ReplayItem

MOVE_RATE = 1 / 3  # of the items that are long enough
MOVE_MIN_CHARS = 60
EDIT_RATE = 1 / 4
# How far above the gap a line is added, in lines; an import goes where the imports are.
EDIT_NEAREST, EDIT_FARTHEST, IMPORT_FARTHEST = 3, 40, 100

_IMPORTS = {
    "python": (("import ", "from "), "import functools"),
    "javascript": (("import ",), "import { readFile } from 'node:fs'"),
    "javascriptreact": (("import ",), "import { readFile } from 'node:fs'"),
    "typescript": (("import ",), "import { readFile } from 'node:fs';"),
    "typescriptreact": (("import ",), "import { readFile } from 'node:fs';"),
    "go": (("import ",), 'import "errors"'),
    "rust": (("use ",), "use std::fmt::Write;"),
    "java": (("import ",), "import java.util.List;"),
    "c": (("#include",), "#include <string.h>"),
    "cpp": (("#include",), "#include <utility>"),
}
_COMMENTS = ("TODO: say why", "the order matters here", "NOTE: also used below")


@dataclass(frozen=True)
class Look:
    """The cursor goes elsewhere and comes back.

    Attributes:
        at: characters of the removed piece that stand before it happens.
        behind: the place is behind the gap; ``offset`` counts from the gap's end, else from the
            beginning of the file.
    """

    at: int
    behind: bool
    offset: int


@dataclass(frozen=True)
class LineAbove:
    """A line is added above the gap and taken out again at the end.

    Attributes:
        at: characters of the removed piece that stand before it happens.
        offset: where the line is put, from the beginning of the file.
        text: with its line end.
    """

    at: int
    offset: int
    text: str


def plan_look(item: ReplayItem, generator: random.Random) -> Look | None:
    """For about every third long item: the end of another line, when part of the piece has been typed."""
    if len(item.removed) <= MOVE_MIN_CHARS or generator.random() >= MOVE_RATE:
        return None
    places = [(False, end) for end in _line_ends(item.before)[:-EDIT_NEAREST]]
    places += [(True, end) for end in _line_ends(item.after)[EDIT_NEAREST:]]
    if not places:
        return None
    behind, offset = generator.choice(places)
    return Look(generator.randint(5, len(item.removed) - 5), behind, offset)


def plan_line_above(item: ReplayItem, generator: random.Random) -> LineAbove | None:
    """For about every fourth item: an import or a comment, in the first half of the piece."""
    if generator.random() >= EDIT_RATE:
        return None
    at = generator.randint(0, len(item.removed) // 2)
    lines = item.before.split("\n")
    starts, import_line = _IMPORTS[item.language]
    gap = len(lines) - 1
    imports = [
        number
        for number in range(max(gap - IMPORT_FARTHEST, 0), gap - EDIT_NEAREST + 1)
        # What comes from there must stay the first statement of a file.
        if lines[number].startswith(starts) and "__future__" not in lines[number]
    ]
    near = [n for n in range(max(gap - EDIT_FARTHEST, 0), gap - EDIT_NEAREST + 1) if lines[n].strip()]
    if imports and generator.random() < 0.5:
        number, text = generator.choice(imports), import_line
    elif near:
        number = generator.choice(near)
        sign = "#" if item.language == "python" else "//"
        text = f"{leading_blanks(lines[number])}{sign} {generator.choice(_COMMENTS)}"
    else:
        return None
    return LineAbove(at, sum(len(line) + 1 for line in lines[:number]), text + "\n")


def _line_ends(text: str) -> list[int]:
    """Offsets of the ends of all lines that are not blank."""
    ends, offset = [], 0
    for line in text.split("\n"):
        if line.strip():
            ends.append(offset + len(line))
        offset += len(line) + 1
    return ends
