"""Filters leave right suggestions alone: gaps cut into real code, filled with what stood there.

Each gap's true middle goes through the chain. A filter that changes it is wrong there: the bounds are
the shares seen, less a little for other versions of the files.
"""

from __future__ import annotations

import importlib.util
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.lines import indent_columns
from lsp_server.completion.filter_context import filter_context
from lsp_server.completion.filters import FilterContext, run_filters
from lsp_server.completion.options import CompletionOptions
from lsp_server.documents.text import Point, Snapshot

ROOT = Path(__file__).parents[3]
FILES = 120
GAPS_PER_FILE = 4
MAX_LINES = 10


def _python() -> list[Path]:
    library = Path(sysconfig.get_paths()["stdlib"])
    return [*sorted(library.glob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]


def _cpp() -> list[Path]:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    include = Path(spec.origin).parent / "include"
    return sorted((include / "c10").rglob("*.h")) + sorted((include / "torch" / "csrc" / "jit").rglob("*.h"))


SOURCES = {"python": _python, "cpp": _cpp}
KINDS = ("line-end", "statement", "block", "span")


def _gaps(lines: list[str], chance: random.Random, kind: str) -> Iterator[tuple[Point, str, int]]:
    """Cursor, middle without white space at its end, and the last line it covers."""
    depth = [indent_columns(line[: len(line) - len(line.lstrip())]) for line in lines]
    numbers = list(range(len(lines) - 1))
    chance.shuffle(numbers)
    for number in numbers:
        line = lines[number]
        if not line.strip() or not depth[number] or len(line) > 200:
            continue
        last = number
        column = len(line)
        if kind == "line-end":
            words = [match.start() for match in re.finditer(r"\b\w", line)]
            column = chance.choice(words) if words else column
        elif kind == "statement":
            column = len(line) - len(line.lstrip())
        elif kind == "block":
            if not line.rstrip().endswith((":", "{")):
                continue
            while last + 1 < len(lines) and (not lines[last + 1].strip() or depth[last + 1] > depth[number]):
                last += 1
        else:
            last = number + chance.randint(1, 4)
            between = range(number + 1, min(last + 1, len(lines)))
            if last >= len(lines) or any(lines[n].strip() and depth[n] < depth[number] for n in between):
                continue
        while last > number and not lines[last].strip():
            last -= 1
        middle = "\n".join([line[column:], *lines[number + 1 : last + 1]]).rstrip()
        # Tests of prompts spell out control tokens, at which an answer ends.
        if last - number <= MAX_LINES and any(char.isalnum() for char in middle) and "<|" not in middle:
            yield Point(number, column), middle, last


def cut(language: str, kind: str) -> Iterator[tuple[Path, FilterContext, str]]:
    chance = random.Random(f"{language} {kind}")
    files = SOURCES[language]()
    for path in chance.sample(files, min(FILES, len(files))):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        lines = [line.rstrip() for line in text.split("\n")]
        for number, (cursor, middle, last) in enumerate(_gaps(lines, chance, kind)):
            if number == GAPS_PER_FILE:
                break
            left = [*lines[: cursor.line], lines[cursor.line][: cursor.column], *lines[last + 1 :]]
            snapshot = Snapshot.of("\n".join(left), language_id=language)
            yield path, filter_context(snapshot, cursor, CompletionOptions()), middle


@pytest.mark.parametrize(
    ("language", "kind", "share"),
    [
        ("python", "line-end", 0.99),
        ("python", "statement", 0.99),
        ("python", "block", 0.99),
        # Some of these leave the block of the cursor or run into the next definition: suggestions end there.
        ("python", "span", 0.9),
        ("cpp", "line-end", 0.99),
        ("cpp", "statement", 0.99),
        ("cpp", "block", 0.985),
        ("cpp", "span", 0.95),
    ],
)
def test_the_true_middle_stays(language: str, kind: str, share: float) -> None:
    changed: Counter[str] = Counter()
    gaps = 0
    for _, context, middle in cut(language, kind):
        gaps += 1
        kept, name = run_filters(middle, context)
        if kept != middle:
            changed[name or "cut"] += 1
        # Whatever a filter takes away or indents anew, it writes nothing of its own.
        assert kept is None or "".join(kept.split()) in "".join(middle.split())
    assert gaps >= 100
    assert 1 - changed.total() / gaps >= share, changed
