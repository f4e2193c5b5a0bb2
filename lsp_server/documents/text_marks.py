"""Strings that go over several lines, by the marks that they begin and end with."""

from __future__ import annotations

import re
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


def open_mark(text: str, marks: tuple[str, ...]) -> str:
    """The mark of the string that ``text`` ends in, "" for none. Comments are not told from code."""
    if not any(mark in text for mark in marks):
        return ""
    inside = ""
    for match in re.finditer(r"\\.|" + "|".join(map(re.escape, marks)), text, re.DOTALL):
        found = match.group()
        if found[0] == "\\":
            continue
        if not inside:
            inside = found
        elif found == inside:
            inside = ""
    return inside
