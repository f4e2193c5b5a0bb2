"""Brackets that an editor closes by itself do not make a prompt be read anew."""

from __future__ import annotations

import pytest

from lsp_server.completion.prompt import PromptBuilder
from lsp_server.context.auto_closed import is_auto_closed
from lsp_server.context.window import Budget, choose
from lsp_server.documents.text import Point, Snapshot
from tests.unit.lsp.test_prompt_reuse import Reader, builder  # noqa: F401

CLOSERS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ("print(", ")"),
        ("print(", " ) "),
        ("a[f(", ")]"),
        ('print("', '")'),
        ("say(\"it's ", '")'),
        ('say("\\"', '")'),
        ('"""', '"""'),
        ("x = f(a)[", "]"),
        ("if (a) {", "}"),
        ("f(a[", "]"),
        ("log(`${x}", "`)"),
    ],
)
def test_what_an_editor_closes(head: str, rest: str) -> None:
    assert is_auto_closed(head, rest)


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ("print(", ""),
        ("print(", "  "),
        ("print(", "a)"),
        ("def f(", "):"),
        ("print(a)", ")"),
        ("f(a[", ")"),
        ("f(a[", ")]"),
        ('print("a"', '"'),
        ("", "}"),
        ('"(', ")"),
        ("(" * 600, ")"),
    ],
)
def test_what_the_user_wrote(head: str, rest: str) -> None:
    assert not is_auto_closed(head, rest)


@pytest.mark.parametrize(("end", "below"), [("", ""), ("\n", "after()"), ("\r\n", "after()")])
def test_the_window_ends_the_line_at_the_cursor(end: str, below: str) -> None:
    snapshot = Snapshot.of(f"first()\ncall(['x']){end}{below}")
    window = choose(snapshot, Point(1, len("call(['x'")), Budget.split(100), len)
    assert window.head == "call(['x'"
    assert window.suffix == ("\n" + below if end else "")


def test_typing_with_closed_brackets_reads_no_more_than_without(builder: PromptBuilder) -> None:  # noqa: F811
    above = [f"value_{number} = {number}" for number in range(40)]
    below = [f"other_{number} = {number}" for number in range(40)]
    typed = 'print(names["first"], [1, (2, 3)], "end")'
    worst = 0
    reader = Reader(builder, "spm")
    reader.new_tokens([*above, "", *below], len(above), 0)
    pending = ""
    for column, char in enumerate(typed, 1):
        if pending and char == pending[0]:
            pending = pending[1:]
        elif char in CLOSERS:
            pending = CLOSERS[char] + pending
        line = typed[:column] + pending
        worst = max(worst, reader.new_tokens([*above, line, *below], len(above), column))
    assert not pending
    assert worst <= 8
