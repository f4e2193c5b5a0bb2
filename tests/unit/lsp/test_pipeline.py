"""The prompt's end: what is healed, and where the cursor's line stands."""

from __future__ import annotations

import pytest

from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import Prepared, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.documents.text import Point, Snapshot
from tests.fake_engine import FakeCodec


class WordCodec(FakeCodec):
    """Heals the last word with the blank before it."""

    def healing_start(self, line: str) -> int:
        return max(line.rfind(" "), 0)


def prepared(options: CompletionOptions, column: int = 12, last: str = "    return value") -> Prepared:
    snapshot = Snapshot.of(f"def f(value):\n{last}\nf(1)\n")
    return prepare(snapshot, Point(1, column), PromptBuilder(WordCodec(), 4096), options)


def shown(request: Prepared) -> str:
    return WordCodec().show(request.request.prompt)


def test_the_last_piece_is_generated_again() -> None:
    request = prepared(CompletionOptions())
    assert request.request.heal == " v"
    assert shown(request) == (
        "<|fim_prefix|><|fim_suffix|>alue\nf(1)\n<|fim_middle|>def f(value):\n    return"
    )


@pytest.mark.parametrize(
    ("options", "expected", "heal"),
    [
        (
            CompletionOptions(heal=False),
            "<|fim_prefix|><|fim_suffix|>alue\nf(1)\n<|fim_middle|>def f(value):\n    return v",
            "",
        ),
        (
            CompletionOptions(order="line-in-middle"),
            "<|fim_prefix|>def f(value):\n<|fim_suffix|>alue\nf(1)\n<|fim_middle|>    return",
            " v",
        ),
        (
            CompletionOptions(order="psm"),
            "<|fim_prefix|>def f(value):\n    return<|fim_suffix|>alue\nf(1)\n<|fim_middle|>",
            " v",
        ),
        (
            CompletionOptions(order="psm", heal=False),
            "<|fim_prefix|>def f(value):\n    return v<|fim_suffix|>alue\nf(1)\n<|fim_middle|>",
            "",
        ),
    ],
)
def test_each_can_be_switched_off(options: CompletionOptions, expected: str, heal: str) -> None:
    request = prepared(options)
    assert shown(request) == expected and request.request.heal == heal


def test_typing_within_a_line_leaves_the_prompt_before_it_alone() -> None:
    prompts = [prepared(CompletionOptions(), column, "    return value") for column in (5, 8, 11)]
    kept = [shown(prompt).partition("<|fim_middle|>")[0].partition("<|fim_suffix|>")[0] for prompt in prompts]
    assert len(set(kept)) == 1
    assert {prompt.request.heal for prompt in prompts} == {" r", " retu", " "}


def test_text_that_cannot_be_encoded_is_not_healed() -> None:
    assert prepared(CompletionOptions(), 8, "    x \ud800z y").request.heal == ""
