"""Reading answers: the same lines however the text is cut into pieces."""

from __future__ import annotations

import random

import pytest

from lsp_server.inline_edit.answer import AnswerReader, fence_for

OLD = ["def f():", "    return 1"]


def read(text: str, fence: str = "```", pieces: int | None = None, seed: int = 0) -> tuple[list[str], bool]:
    generator = random.Random(seed)
    reader, lines, at = AnswerReader(OLD, fence), [], 0
    while at < len(text):
        size = generator.randrange(1, 6) if pieces is None else pieces
        lines += reader.feed(text[at : at + size])
        at += size
    lines += reader.finish()
    return lines, reader.no_code


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def f():\n    return 2\n```\nDone.", ["def f():", "    return 2"]),
        ("def f():\n    return 2", ["def f():", "    return 2"]),
        ("```python\ndef f():\n    return 2\n```", ["def f():", "    return 2"]),
        ("Here is the code:\n\n```python\ndef f():\n    return 2\n```\nBye", ["def f():", "    return 2"]),
        ("Sure!\nI changed it.\n```\nx = 1\n```", ["x = 1"]),
        ("\n\nx = 1\n\n\ny = 2\n\n", ["x = 1", "", "", "y = 2"]),
        ("x = 1\r\ny = 2\r\n", ["x = 1", "y = 2"]),
        ("x = 1\ry = 2", ["x = 1", "y = 2"]),
        ("x = '```'\ny\n```", ["x = '```'", "y"]),
        ("~~~\nx\n~~~\ny", ["~~~", "x", "~~~", "y"]),
        ("```python\n```python\nx\n```", ["x"]),
    ],
)
def test_lines(text: str, lines: list[str]) -> None:
    for seed in range(5):
        assert read(text, seed=seed) == (lines, False)
    assert read(text, pieces=1)[0] == read(text, pieces=1000)[0] == lines


@pytest.mark.parametrize("text", ["", "\n\n", "Sure, I can help with that.\nWhat is it?", "```", "```\n```"])
def test_no_code(text: str) -> None:
    assert read(text) == ([], True)


def test_a_line_of_the_selection_is_no_chatter() -> None:
    reader = AnswerReader(["note = 1"])
    assert reader.feed("note = 1\n") == ["note = 1"]


def test_shorter_fences_belong_to_the_code() -> None:
    assert fence_for(["a", "```python", "x", "```"]) == "````"
    assert read("```\nx\n```\n````\nend", "````")[0] == ["```", "x", "```"]


def test_code_that_holds_the_fence_line_itself_goes_on() -> None:
    reader = AnswerReader(["```"])
    assert reader.feed("```\n") == ["```"]
