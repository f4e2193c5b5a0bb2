"""Functions of this project's own code: bodies answered with the whole function, and functions as a whole."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference.lines import line_columns
from lsp_server.context.node_types import FUNCTIONS, header_stop
from lsp_server.documents.syntax import parser_for
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.context import context_of
from lsp_server.inline_edit.layout import Layout
from lsp_server.inline_edit.reasons import Flag
from lsp_server.inline_edit.rewrite import Rewrite, Rewritten
from lsp_server.inline_edit.selection import Selection

if TYPE_CHECKING:
    from tree_sitter import Node

ROOT = Path(__file__).parents[3]
FILES = {
    "python": ("lsp_server/inline_edit/*.py", "lsp_server/completion/*.py", "inference/*.py"),
    "typescript": ("editors/vscode/src/*.ts",),
    "lua": ("editors/neovim/lua/draftline/*.lua",),
}
CASES = int(os.environ.get("DRAFTLINE_RANDOM_EDITS", "150"))


@cache
def functions(language: str) -> tuple[tuple[Snapshot, int, int, int], ...]:
    """Document, first line, first of the body, line behind the last one of the body, of long enough ones."""
    return tuple(
        each
        for pattern in FILES[language]
        for path in sorted(ROOT.glob(pattern))
        for each in _of(path, language)
    )


def _of(path: Path, language: str) -> Iterator[tuple[Snapshot, int, int, int]]:
    snapshot = Snapshot.of(path.read_text(encoding="utf-8"), "x", language_id=language)
    parser = parser_for(language)
    assert parser is not None
    stack: list[Node] = [parser.parse("".join(snapshot.lines).encode()).root_node]
    while stack:
        node = stack.pop()
        stack += node.children
        body = header_stop(node) if node.type in FUNCTIONS else None
        if body is None:
            continue
        stop = node.end_point[0] + (language == "python")
        head = line_columns(snapshot.line(node.start_point[0]))
        if stop - body >= 2 and all(
            line_columns(snapshot.line(n)) > head for n in range(body, stop) if snapshot.line(n).strip()
        ):
            yield snapshot, node.start_point[0], body, stop


def rewritten(selection: Selection, answer: list[str], generator: random.Random) -> Rewritten:
    rewrite = Rewrite(selection, "change it", Layout.of(selection.lines))
    text, at = "\n".join(answer) + "\n```", 0
    while at < len(text):
        size = generator.randrange(1, 40)
        rewrite.feed(text[at : at + size])
        at += size
    return rewrite.finish()


def changed(lines: tuple[str, ...], generator: random.Random) -> list[str]:
    """With a line more or other than it was."""
    new = list(lines)
    filled = [number for number, line in enumerate(new) if line.strip()]
    at = generator.choice([filled[0], filled[-1], generator.choice(filled)])
    blanks = new[at][: line_columns(new[at])]
    new[at : at + generator.randrange(2)] = [f"{blanks}changed_{generator.randrange(99)}()"]
    return [line if line.strip() else "" for line in new]


@pytest.mark.parametrize("language", FILES)
def test_a_body_may_be_answered_with_what_the_prompt_shows_around_it(language: str) -> None:
    generator = random.Random(5)
    for _ in range(CASES):
        snapshot, _, first, stop = generator.choice(functions(language))
        selection = Selection.of(snapshot, Point(first, 0), Point(stop, 0))
        context = context_of(selection)
        new = changed(selection.lines, generator)
        columns = [line_columns(head) for head in context.heads]
        ends = []
        for number in range(stop, len(snapshot.lines)):
            line = snapshot.line(number)
            if columns and line.strip() and line_columns(line) <= columns[-1]:
                columns.pop()
                ends.append(line)
        if language == "python":
            ends = []
        imports = list(context.imports) if generator.random() < 0.7 else []
        done = rewritten(selection, [*imports, *context.heads, *new, *ends], generator)
        while not new[-1].strip():
            new.pop()
        kept = [line if line.strip() else "" for line in done.lines]
        while not kept[-1]:
            kept.pop()
        assert kept == new, (first, context.heads, new, ends)
        assert Flag.BEYOND not in done.flags


@pytest.mark.parametrize("language", FILES)
def test_functions_that_are_selected_as_a_whole_lose_nothing(language: str) -> None:
    generator = random.Random(6)
    for _ in range(CASES):
        snapshot, first, _, stop = generator.choice(functions(language))
        stop += language != "python"
        selection = Selection.of(snapshot, Point(first, 0), Point(stop, 0))
        new = changed(selection.lines, generator)
        done = rewritten(selection, Layout.of(selection.lines).shown(new), generator)
        assert [line if line.strip() else "" for line in done.lines] == new
        assert Flag.BEYOND not in done.flags
