"""How much of a prompt must be read anew at each key, in a file that is longer than the prompt."""

from __future__ import annotations

import argparse
import inspect
import statistics
from dataclasses import dataclass
from pathlib import Path

import pytest

from inference.tokenizer import Tokenizer
from inference.weights import store
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.prompt import MAX_SUFFIX_TOKENS, PromptBuilder
from lsp_server.context.related import KeptLines
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.order import PROMPT_ORDERS, PromptOrder
from tests.tiny_models import make_tokenizer

TOKENS = 700
START = 900  # line
TYPED = 120  # lines


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> PromptBuilder:
    path: Path = tmp_path_factory.mktemp("codec") / "tokenizer.json"
    make_tokenizer().save(str(path))
    return PromptBuilder(Tokenizer(path, ()), 4096)


def source() -> list[str]:
    return inspect.getsource(argparse).splitlines()


class Reader:
    """What a slot does: reads what follows the longest common prefix with the prompt before."""

    def __init__(self, builder: PromptBuilder, order: PromptOrder = "line-in-middle") -> None:
        self._builder = builder
        self._order = order
        self._seen: tuple[int, ...] = ()
        self.first_line = -1

    def new_tokens(self, lines: list[str], line: int, column: int) -> int:
        options = CompletionOptions(prompt_tokens=TOKENS, max_new_tokens=64, order=self._order)
        built = self._builder.build(Snapshot.of("\n".join(lines)), Point(line, column), options)
        assert len(built.ids) <= TOKENS
        shared = 0
        for old, new in zip(self._seen, built.ids, strict=False):
            if old != new:
                break
            shared += 1
        self._seen, self.first_line = built.ids, built.window.first_line
        return len(built.ids) - shared


def test_typing_reads_a_few_tokens_and_the_window_slides_in_blocks(builder: PromptBuilder) -> None:
    lines, reader = source(), Reader(builder)
    typed = lines[START : START + TYPED]
    del lines[START : START + TYPED]  # they are typed again
    on_line: list[int] = []
    on_newline: list[int] = []
    on_slide: list[int] = []
    steps: list[int] = []
    for number, text in enumerate(typed, START):
        lines.insert(number, "")
        for column in range(len(text) + 1):
            lines[number] = text[:column]
            before = reader.first_line
            new = reader.new_tokens(lines, number, column)
            slid = reader.first_line != before
            if slid:
                steps.append(reader.first_line - before)
            (on_slide if slid else on_newline if column == 0 else on_line).append(new)
    keys = len(on_line) + len(on_newline) + len(on_slide)
    assert keys > 3000
    # What is being typed is healed, so it is hardly ever in the prompt, and the rest was read before.
    assert max(on_line) <= 40 and sum(on_line) / len(on_line) < 1
    # The line that is left, and the text behind the cursor.
    assert max(on_newline) <= MAX_SUFFIX_TOKENS + 60
    # The whole prompt once in so many lines, not at every one; the start never goes back.
    assert all(step >= 8 and step % 8 == 0 for step in steps[1:])
    assert 5 <= len(on_slide) <= TYPED / 6
    assert sum(on_slide) > len(on_slide) * TOKENS / 2, "it is the window that slid"
    assert (sum(on_line) + sum(on_newline) + sum(on_slide)) / keys < 10


def test_an_edit_costs_what_follows_it(builder: PromptBuilder) -> None:
    lines, reader = source(), Reader(builder)
    reader.new_tokens(lines, START, 0)
    whole = sum(len(builder._codec.encode(line + "\n")) for line in lines[reader.first_line : START])
    edited = START - 6
    below = sum(len(builder._codec.encode(line + "\n")) for line in lines[edited:START])
    assert below < whole / 2
    lines[edited] = lines[edited] + "  # changed"
    assert reader.new_tokens(lines, START, 0) <= below + MAX_SUFFIX_TOKENS + 40
    # Behind the window: nothing but the short text behind the cursor can be affected.
    lines[START + 300 :] = []
    assert reader.new_tokens(lines, START, 0) == 0
    lines[START + 1] = "changed"
    assert reader.new_tokens(lines, START, 0) <= MAX_SUFFIX_TOKENS + 40
    # Above the window without another number of lines: nothing.
    lines[2] = "changed"
    assert reader.new_tokens(lines, START, 0) == 0


TYPED_TEXT = """
        if namespace is None:
            namespace = Namespace()
        for action in self._actions:
            if action.dest is not SUPPRESS:
                setattr(namespace, action.dest, action.default)

        # the second half
        try:
            return self._parse(args, namespace)
        except ArgumentError as error:
            self.error(str(error))
        return namespace
"""


class Session:
    """A document in which somebody types, deletes and edits, with a request after each of it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.lines = source()
        self.line, self.column = START, len(source()[START])
        self.read: list[int] = []
        self._reader.new_tokens(self.lines, self.line, self.column)  # the first prompt is read as a whole

    def ask(self) -> None:
        self.read.append(self._reader.new_tokens(self.lines, self.line, self.column))

    def type(self, text: str) -> None:
        for char in text:
            line = self.lines[self.line]
            before, after = line[: self.column], line[self.column :]
            if char == "\n":
                self.lines[self.line : self.line + 1] = [before, after]
                self.line, self.column = self.line + 1, 0
            else:
                self.lines[self.line] = before + char + after
                self.column += 1
            self.ask()

    def delete_lines(self, count: int) -> None:
        """The last ones, as a whole, the cursor's first."""
        for _ in range(count):
            del self.lines[self.line]
            self.line -= 1
            self.column = len(self.lines[self.line])
            self.ask()

    def insert(self, at: int, text: str) -> None:
        """Elsewhere in the document."""
        self.lines.insert(at, text)
        if at <= self.line:
            self.line += 1
        self.ask()


def session(builder: PromptBuilder, order: PromptOrder) -> list[int]:
    """New prompt tokens of each request, with a builder that has no anchors yet."""
    reader = Reader(PromptBuilder(builder._codec, 4096), order)
    session = Session(reader)
    session.type(TYPED_TEXT)
    session.delete_lines(2)
    session.type("\n        return namespace, args")
    session.insert(session.line - 12, "        edited = True")  # above, within the window
    session.type("\n        # on")
    session.insert(2, "import edited")  # above the window
    session.type(" and on\n")
    session.insert(session.line + 4, "        edited = True")  # below
    session.type("        done()\n        return 1\n")
    session.insert(session.line + 300, "edited = True")  # far below
    session.type("        x = 1")
    return session.read


@dataclass(frozen=True)
class Figures:
    """New prompt tokens over the requests of a session."""

    median: float
    p95: int
    total: int

    @classmethod
    def of(cls, read: list[int]) -> Figures:
        return cls(statistics.median(read), sorted(read)[int(len(read) * 0.95)], sum(read))


def check_session(builder: PromptBuilder) -> None:
    figures = {order: Figures.of(session(builder, order)) for order in PROMPT_ORDERS}
    for order in ("spm", "line-in-middle", "lines-in-middle"):
        assert figures[order].median <= 8, figures
        assert figures[order].p95 <= 96, figures
    # Newlines, lines that go and lines that come above the window are what the anchor is for.
    assert figures["lines-in-middle"].total < figures["line-in-middle"].total / 2, figures
    assert figures["line-in-middle"].total < figures["psm"].total / 2, figures


def test_a_session_reads_little(builder: PromptBuilder) -> None:
    check_session(builder)


@pytest.mark.model
def test_a_session_reads_little_with_the_real_tokenizer(real_model: str) -> None:
    tokenizer = Tokenizer(store.prepare(real_model, "int8").path / "tokenizer.json")
    check_session(PromptBuilder(tokenizer, 4096))


def test_a_newline_reads_its_own_tokens_where_the_lines_are_in_the_middle(builder: PromptBuilder) -> None:
    session = Session(Reader(PromptBuilder(builder._codec, 4096), "lines-in-middle"))
    for number in range(20):
        session.type(f"\n        a{number} = 1")
    # With eight lines in the middle the anchor moves at every ninth.
    assert sum(read > 96 for read in session.read) <= 3
    assert sum(session.read) < 20 * 60


def test_the_figures_of_a_session_repeat(builder: PromptBuilder) -> None:
    for order in PROMPT_ORDERS:
        assert session(builder, order) == session(builder, order)


def test_lines_above_the_window_do_not_make_it_slide_more_often(builder: PromptBuilder) -> None:
    kept = [KeptLines(3, 4, "import os\n" * 8, 0, verbatim=False)]
    snapshot = Snapshot.of("\n".join(source()))
    begins: dict[bool, set[int]] = {}
    for on in (False, True):
        options = CompletionOptions(
            prompt_tokens=TOKENS, context_sources=frozenset(["imports"] if on else []), heal=False
        )
        begins[on] = {
            builder.build(snapshot, Point(line, 0), options, (), kept if on else ()).window.first_line
            for line in range(START, START + 64)
        }
    assert abs(len(begins[True]) - len(begins[False])) <= 1


def test_a_place_without_lines_above_the_window_keeps_the_anchor(builder: PromptBuilder) -> None:
    builder = PromptBuilder(builder._codec, 4096)
    snapshot = Snapshot.of("\n".join(source()), "file:///w/argparse.py")
    options = CompletionOptions(
        prompt_tokens=TOKENS, order="lines-in-middle", context_sources=frozenset(["scope"]), heal=False
    )
    kept = [KeptLines(3, 4, "import os\n", 0, verbatim=False)]
    first = builder.build(snapshot, Point(START, 0), options, (), kept).window
    assert builder.build(snapshot, Point(START, 0), options).window == first
