"""Comments and strings by the look of one line, for languages and texts that no grammar understands."""

from __future__ import annotations

import re
from typing import Literal

from lsp_server.documents.languages import canonical

Place = Literal["code", "comment", "string"]

# Line comments; a language that is not listed has none that we know of.
_MARKERS: dict[str, tuple[str, ...]] = {}
for _marker, _names in {
    "//": "c cpp csharp css dart fsharp go groovy java javascript javascriptreact json5 jsonc kotlin less "
    "objective-c objective-cpp php proto rust scala scss svelte swift typescript typescriptreact vue zig",
    "#": "cmake dockerfile elixir fish graphql julia makefile nim perl php powershell python r ruby "
    "shellscript terraform toml yaml",
    "--": "haskell lua sql",
    ";": "clojure ini lisp scheme",
    "%": "bibtex erlang latex",
    "'": "vb",
    '"': "viml",
}.items():
    for _name in _names.split():
        _MARKERS[_name] = (*_MARKERS.get(_name, ()), _marker)

# In these ' is no quote, or an apostrophe at least as often.
_DOUBLE_ONLY = frozenset(
    [
        "clojure",
        "erlang",
        "fsharp",
        "haskell",
        "html",
        "json",
        "jsonc",
        "kotlin",
        "ocaml",
        "rust",
        "scala",
        "swift",
        "vb",
        "xml",
    ]
)
# What is written rather than programmed; quotes and apostrophes mean nothing here.
PROSE = frozenset(
    [
        "asciidoc",
        "bibtex",
        "diff",
        "git-commit",
        "latex",
        "markdown",
        "mdx",
        "plaintext",
        "restructuredtext",
        "tex",
        "viml",
    ]
)
_BACKTICKS = frozenset(
    ["go", "javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"]
)
_TRIPLE = ('"""', "'''")
_CHARACTER = re.compile(r"'(?:\\[^']{1,8}|[^\\'])'")
# Opens a comment of several lines, with nothing behind it.
COMMENT_OPENING = re.compile(r"\s*(?:/\*[*!]?|<!--|--\[=*\[|=begin|\{-\|?|\(\*\*?)\s*\Z")
TEXT_OPENING = re.compile(r"\s*[rRuUfFbB]{0,2}(?:\"\"\"|''')\s*\Z")


def place_in_line(head: str, language_id: str) -> Place:
    """Where the end of ``head``, the line up to the cursor, stands; comments and strings of several lines
    that began above are not known here."""
    name = canonical(language_id)
    if name in PROSE or not name:
        return "code"
    markers = _MARKERS.get(name, ())
    quotes = quotes_of(name)
    at, quote = 0, ""
    while at < len(head):
        if quote:
            if head[at] == "\\":
                at += 2
            elif head.startswith(quote, at):
                at += len(quote)
                quote = ""
            else:
                at += 1
            continue
        if any(_begins_comment(head, at, marker) for marker in markers):
            return "comment"
        if head.startswith(_TRIPLE, at):
            quote = head[at : at + 3]
        elif head[at] in quotes:
            quote = head[at]
        elif head[at] == "'" and (character := _CHARACTER.match(head, at)):
            at = character.end()
            continue
        at += max(1, len(quote))
    return "string" if quote else "code"


def quotes_of(language_id: str) -> str:
    """The characters that begin and end a string."""
    name = canonical(language_id)
    if name in PROSE or not name:
        return ""
    if name in _DOUBLE_ONLY:
        return '"'
    return "\"'`" if name in _BACKTICKS else "\"'"


def _begins_comment(head: str, at: int, marker: str) -> bool:
    if not head.startswith(marker, at):
        return False
    # $#, ${x#y} and http://x are none.
    before = head[at - 1 : at]
    return not before or (before != ":" if marker == "//" else before in " \t;({" or marker in "'\"")
