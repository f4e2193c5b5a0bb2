"""Strings that go over several lines, by the marks that they begin and end with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from lsp_server.documents.languages import canonical

_DOUBLE = frozenset({"elixir", "graphql", "java", "julia", "kotlin", "csharp", "scala", "swift"})
_BOTH = frozenset({"dart", "groovy", "python", "toml"})
_BACKTICK = frozenset(
    {"go", "javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"}
)


@cache
def marks_of(language_id: str) -> tuple[str, ...]:
    """The marks of a language, none for one that is not known to have such strings."""
    for language in (language_id, canonical(language_id)):
        if language in _BOTH:
            return ('"""', "'''")
        if language in _DOUBLE:
            return ('"""',)
        if language in _BACKTICK:
            return ("`",)
    return ()


@cache
def _begins(marks: tuple[str, ...]) -> re.Pattern[str]:
    """A mark outside of them. In a string of one line it is only quoted, as in a list of such marks."""
    strings = r"\"(?:\\[^\n]|[^\"\\\n])*\"|'(?:\\[^\n]|[^'\\\n])*'"
    return re.compile("|".join([r"\\.", *map(re.escape, marks), strings]), re.DOTALL)


@cache
def _ends(mark: str) -> re.Pattern[str]:
    return re.compile(r"\\.|" + re.escape(mark), re.DOTALL)


def open_mark(text: str, marks: tuple[str, ...]) -> str:
    """The mark of the string that ``text`` ends in, "" for none. Comments are not told from code."""
    if not any(mark in text for mark in marks):
        return ""
    inside, at = "", 0
    while match := (_ends(inside) if inside else _begins(marks)).search(text, at):
        at = match.end()
        if match.group() in marks:
            inside = "" if inside else match.group()
    return inside


def open_mark_behind(lines: Sequence[str], head: str, marks: tuple[str, ...]) -> str:
    """The same for the text of ``lines`` with ``head`` behind them.

    They should go back to the document's begin: in a text that begins within a string, each end of one is
    taken for a begin. So this is quick: lines without a mark decide nothing and are passed over.
    """
    if not marks:
        return ""
    one, other = marks[0], marks[-1]
    return open_mark("".join([*(line for line in lines if one in line or other in line), head]), marks)
