"""How much of a prompt must be read anew at each key, in a file that is longer than the prompt."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

import pytest

from inference.tokenizer import Tokenizer
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.prompt import MAX_SUFFIX_TOKENS, PromptBuilder
from lsp_server.documents.text import Point, Snapshot
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

    def __init__(self, builder: PromptBuilder) -> None:
        self._builder = builder
        self._seen: tuple[int, ...] = ()
        self.first_line = -1

    def new_tokens(self, lines: list[str], line: int, column: int) -> int:
        options = CompletionOptions(prompt_tokens=TOKENS, max_new_tokens=64)
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
