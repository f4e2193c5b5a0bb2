"""A day in an editor as requests: typing in several files, edits, moves, files opened and closed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bench.places import BenchPlace, place_in, source_files
from inference.api import GenerationRequest, TextCodec
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion
from lsp_server.documents.text import Point

# What happens to a request: its answer is awaited; the next key comes before it; it is cancelled.
Then = Literal["wait", "go on", "cancel"]

MOST_OPEN = 6  # files
SESSION = 400  # keys, after which the editor is closed
PROMPT_TOKENS = 256
# Most answers are short, as a typist's next key ends what is left of them.
ANSWERS = (1, 2, 2, 4, 4, 8)
KEY_CHARS = 3  # typed between two requests at most
# Chances for each key.
_OPEN, _CLOSE, _SWITCH, _MOVE, _EDIT = 0.02, 0.015, 0.05, 0.02, 0.05
_GO_ON, _CANCEL = 0.12, 0.08
_TRIES = 50  # to find a place in the files


class NoFiles(Exception):
    """There is nothing to type in."""


@dataclass(frozen=True)
class Step:
    """One key.

    Attributes:
        closes: documents that were closed before it.
    """

    request: GenerationRequest
    then: Then
    closes: tuple[str, ...]


class _File:
    """An open file: a place in it where somebody types what stood there."""

    def __init__(self, place: BenchPlace, uri: str, generator: random.Random) -> None:
        self._place, self._generator = place, generator
        self._lines = list(place.snapshot.lines)
        self._cursor, self._rest = place.cursor, place.removed
        self.uri = uri

    def type(self) -> None:
        """The next characters, or on to another line when this one is complete."""
        if not self._rest:
            self.move()
            return
        taken = self._rest[: self._generator.randint(1, KEY_CHARS)]
        self._rest = self._rest[len(taken) :]
        line, column = self._cursor.line, self._cursor.column
        text = self._lines[line]
        self._lines[line] = text[:column] + taken + text[column:]
        self._cursor = Point(line, column + len(taken))

    def move(self) -> None:
        """To another line, whose end is then typed again."""
        self._type_rest()
        numbers = [n for n, line in enumerate(self._lines) if len(line.strip()) >= 8]
        if not numbers:
            return
        number = self._generator.choice(numbers)
        line = self._lines[number]
        body = line.rstrip("\r\n")
        column = self._generator.randint(len(body) - len(body.lstrip()), len(body) - 2)
        self._lines[number] = body[:column] + line[len(body) :]
        self._cursor, self._rest = Point(number, column), body[column:]

    def edit(self) -> None:
        """A line elsewhere comes, goes or changes."""
        numbers = [number for number in range(len(self._lines) - 1) if number != self._cursor.line]
        if len(numbers) < 4:
            return
        number = self._generator.choice(numbers)
        kind = self._generator.randrange(3)
        if kind == 0:
            self._lines[number] = "    edited = True\n"
            return
        if kind == 1:
            self._lines.insert(number, "    inserted = 1\n")
        else:
            del self._lines[number]
        if number < self._cursor.line:
            self._cursor = replace(self._cursor, line=self._cursor.line + (1 if kind == 1 else -1))

    def request(self, builder: PromptBuilder, options: CompletionOptions) -> GenerationRequest:
        """At the cursor.

        Raises:
            NoSuggestion
        """
        snapshot = replace(self._place.snapshot, uri=self.uri, lines=tuple(self._lines))
        return prepare(snapshot, self._cursor, builder, options).request

    def _type_rest(self) -> None:
        line, column = self._cursor.line, self._cursor.column
        self._lines[line] = self._lines[line][:column] + self._rest + self._lines[line][column:]
        self._rest = ""


class Editor:
    """The same keys for the same files and seed."""

    def __init__(
        self, codec: TextCodec, context: int, options: CompletionOptions, repo: Path, seed: int
    ) -> None:
        """Raises:
        NoFiles: below ``repo`` there are none.
        NoSuggestion: the vocabulary has no fill-in-the-middle format.
        """
        self._builder = PromptBuilder(codec, context)
        if self._builder.format is None:
            raise NoSuggestion("no-fim", "the model has no fill-in-the-middle format")
        self._options = replace(options, prompt_tokens=min(PROMPT_TOKENS, options.prompt_tokens))
        self._repo = repo
        self._generator = random.Random(seed)
        self._files = source_files(repo)
        if not self._files:
            raise NoFiles(f"no source files under {repo}")
        self._open: list[_File] = []
        self._opened = 0

    @property
    def documents(self) -> int:
        """Open at present."""
        return len(self._open)

    def steps(self, count: int) -> Iterator[Step]:
        """``count`` keys."""
        done = 0
        closes: list[str] = []
        while done < count:
            if done % SESSION == 0:
                closes += self._close_all()
            closes += self._wander()
            request = self._key()
            if request is None:
                continue
            yield Step(request, self._then(), tuple(closes))
            closes.clear()
            done += 1

    def _wander(self) -> list[str]:
        """Open, close and switch between files; returns what was closed."""
        chance, closed = self._generator.random, []
        if not self._open or (chance() < _OPEN and len(self._open) < MOST_OPEN):
            self._open.append(self._new())
        if chance() < _CLOSE and len(self._open) > 1:
            closed.append(self._open.pop(self._generator.randrange(len(self._open))).uri)
        if chance() < _SWITCH:
            self._generator.shuffle(self._open)
        return closed

    def _key(self) -> GenerationRequest | None:
        """In the active file, which is the last one."""
        chance, active = self._generator.random, self._open[-1]
        if chance() < _EDIT:
            active.edit()
        if chance() < _MOVE:
            active.move()
        active.type()
        tokens = self._generator.choice(ANSWERS)
        try:
            return active.request(self._builder, replace(self._options, max_new_tokens=tokens))
        except NoSuggestion:
            return None

    def _then(self) -> Then:
        chance = self._generator.random()
        return "go on" if chance < _GO_ON else "cancel" if chance < _GO_ON + _CANCEL else "wait"

    def _new(self) -> _File:
        for _ in range(_TRIES):
            place = place_in(self._generator.choice(self._files), self._repo, self._generator)
            if place is not None:
                self._opened += 1
                return _File(place, f"{place.path}#{self._opened}", self._generator)
        raise NoFiles(f"no source files with text under {self._repo}")

    def _close_all(self) -> list[str]:
        closed = [file.uri for file in self._open]
        self._open.clear()
        return closed
