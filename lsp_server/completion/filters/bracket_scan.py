"""Brackets in code, outside of strings and comments, for any language and for pieces of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from inference.lines import indent_columns
from inference.stops import CLOSERS, OPENERS

_HASH = frozenset(
    {"python", "ruby", "shellscript", "perl", "r", "elixir", "julia"}
    | {"yaml", "toml", "makefile", "dockerfile"}
)
_DASHES = frozenset({"lua", "sql", "haskell", "elm", "ada", "vhdl"})
_SCRIPTS = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"})
# Languages whose '...' is a string; elsewhere it is one character, or the mark of a lifetime.
_SINGLE_QUOTED = (
    _SCRIPTS
    | {"python", "ruby", "shellscript", "perl", "php", "lua", "sql", "r", "elixir"}
    | {"yaml", "toml", "css", "html", "dart", "groovy"}
)
_BACKTICKED = _SCRIPTS | {"go"}


@dataclass(frozen=True)
class Bracket:
    """One bracket.

    Attributes:
        at: index in the text.
        char: the character.
        indent: columns that its line is indented by.
        leads: nothing but blanks stands before it on its line.
    """

    at: int
    char: str
    indent: int
    leads: bool


def brackets_in(text: str, language_id: str) -> Iterator[Bracket]:
    """Brackets of ``text`` in order. A string or comment that began before the text is not seen as one."""
    line_start = 0
    for match in _pattern(language_id).finditer(text):
        found = match.group()
        if found == "\n":
            line_start = match.end()
        elif found in OPENERS or found in CLOSERS:
            line = text[line_start : match.start()]
            blanks = line[: len(line) - len(line.lstrip())]
            yield Bracket(match.start(), found, indent_columns(blanks), blanks == line)
        elif "\n" in found:
            line_start = match.start() + found.rindex("\n") + 1


def push(stack: list[Bracket], found: Bracket) -> Bracket | None:
    """Put ``found`` on the stack of open brackets, or take off what it closes.

    Returns:
        The opening bracket that ``found`` closes; None for an opening bracket, or without a partner.
    """
    if found.char in OPENERS:
        stack.append(found)
        return None
    for depth in range(len(stack) - 1, -1, -1):
        if OPENERS[stack[depth].char] == found.char:
            opener = stack[depth]
            del stack[depth:]
            return opener
    return None


@cache
def _pattern(language_id: str) -> re.Pattern[str]:
    comment = r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)"
    if language_id in _HASH:
        comment = r"#[^\n]*"
    elif language_id in _DASHES:
        comment = r"--[^\n]*"
    single = r"'(?:\\[^\n]|[^'\\\n])*'" if language_id in _SINGLE_QUOTED else r"'(?:\\[^\n']{1,8}|[^'\\\n])'"
    parts = [
        comment,
        r'"""(?s:.*?)(?:"""|\Z)',
        r"'''(?s:.*?)(?:'''|\Z)",
        r'"(?:\\[^\n]|[^"\\\n])*"?',
        single,
        r"[][(){}\n]",
    ]
    if language_id in _BACKTICKED:
        parts.insert(1, r"`[^`]*(?:`|\Z)")
    return re.compile("|".join(parts))
