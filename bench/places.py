"""Places in real source files where something was taken out, as a user might be about to write it."""

from __future__ import annotations

import random
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from lsp_server.context.exclusions import Exclusions
from lsp_server.documents.languages import language_of
from lsp_server.documents.text import Point, Snapshot

SUFFIXES = frozenset(
    {".py", ".js", ".jsx", ".ts", ".tsx", ".go", ".rs", ".java", ".c", ".h", ".cc", ".cpp", ".hpp"}
)
# Smaller files have no context, larger ones are mostly generated.
MIN_BYTES, MAX_BYTES = 600, 200_000
SKIPPED_DIRECTORIES = frozenset(
    {".git", ".hg", ".venv", "venv", "node_modules", "site-packages", "__pycache__", "build", "dist"}
)


@dataclass(frozen=True)
class BenchPlace:
    """A document with a gap, and what stood in it.

    Attributes:
        cursor: where the gap is; column in characters.
        removed: the rest of the line that was taken out.
    """

    path: str
    snapshot: Snapshot
    cursor: Point
    removed: str


def default_corpus() -> Path:
    """Real code that every machine has: the standard library of this Python."""
    return Path(sysconfig.get_paths()["stdlib"])


def sample(root: Path, count: int, seed: int) -> list[BenchPlace]:
    """``count`` places in different files where possible; the same for the same files and seed."""
    generator = random.Random(seed)
    files = source_files(root)
    generator.shuffle(files)
    places: list[BenchPlace] = []
    rounds = 0
    while files and len(places) < count and rounds < 20:
        for path in files:
            place = place_in(path, root, generator)
            if place is not None:
                places.append(place)
                if len(places) == count:
                    break
        rounds += 1
    return places


def source_files(root: Path) -> list[Path]:
    """Files of code below a folder that people wrote and may show, in the order of their names."""
    exclusions = Exclusions()
    exclusions.set_roots([root])
    found = []
    for path in sorted(root.rglob("*")):
        if path.suffix not in SUFFIXES or SKIPPED_DIRECTORIES & set(path.relative_to(root).parts[:-1]):
            continue
        if path.is_file() and MIN_BYTES <= path.stat().st_size <= MAX_BYTES and not exclusions.excludes(path):
            found.append(path)
    return found


def place_in(path: Path, root: Path, generator: random.Random) -> BenchPlace | None:
    """The rest of a random line taken out, the cut at any column, inside words too."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    whole = Snapshot.of(text)
    lines = [number for number in range(len(whole.lines)) if len(whole.line(number).strip()) >= 8]
    if not lines:
        return None
    number = generator.choice(lines)
    line = whole.line(number)
    indent = len(line) - len(line.lstrip())
    column = generator.randint(indent, len(line) - 2)
    shortened = line[:column] + whole.lines[number][len(line) :]
    changed = (*whole.lines[:number], shortened, *whole.lines[number + 1 :])
    name = str(path.relative_to(root))
    snapshot = Snapshot(name, 0, language_of(path), changed, whole.eol)
    return BenchPlace(name, snapshot, Point(number, column), line[column:])
