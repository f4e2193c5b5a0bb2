"""How far a later line must be indented to belong to the scope of the cursor."""

from __future__ import annotations

import re

from inference.lines import indent_columns
from lsp_server.documents.languages import canonical

# What the head of a block or of a list of arguments ends with, across the languages we parse.
_OPENERS = (":", "{", "(", "[", "=>", "->", " do", " then")

_RUBY = (
    r"\s*(?:(?:private |public |protected )?(?:def|class|module|if|unless|while|until|case|when|begin|else"
    r"|elsif|ensure|rescue|for)\b(?!.*\bend$)|.*\bdo(?: \|[^|]*\|)?$)"
)
# Heads of blocks that end with no sign of it.
_HEADS = {
    "ruby": re.compile(_RUBY),
    "lua": re.compile(r".*\bfunction\b[^()]*\([^()]*\)$|\s*(?:else|repeat)$"),
    "shellscript": re.compile(r"\s*(?:else|do|then|case .* in)$"),
    "scala": re.compile(r"\s*(?:[\w\[\]]+ )*def .*[^=!<>]=$"),
}
# Longer lines are data or generated, and some of these patterns take the square of the length.
_LONGEST_LINE = 1000
# Labels in the body of these stand as far left as the head.
_FLAT = re.compile(r"(?:switch|select)\b.*\{$|case\b[^:>]*$")
_FLAT_CLASS = re.compile(r"(?:class|struct)\b.*\{$")
# Languages that end a block with a word, which stands as far left as the head.
_ENDED_BY_WORDS = frozenset({"ruby", "lua", "shellscript", "elixir", "julia", "fish"})


def opens_block(line: str, language_id: str = "") -> bool:
    """Whether a line ends with the head of a block or list."""
    line = line.rstrip()
    head = None if len(line) > _LONGEST_LINE else _HEADS.get(canonical(language_id))
    return line.endswith(_OPENERS) or (head is not None and head.match(line) is not None)


def scope_indent(head: str, language_id: str = "") -> int | None:
    """Columns for `StopRules.min_indent`, given the cursor's line up to the cursor.

    A line that opens a block is followed by deeper ones; a line at its own depth is already the next
    statement or a sibling definition, which nobody asked for, unless it may be the block's end or a label
    in it. None where the text says nothing: at the left margin, or on an empty line whose indentation the
    model still has to choose.
    """
    code = head.strip()
    blanks = head[: len(head) - len(head.lstrip())]
    columns = indent_columns(blanks)
    if opens_block(code, language_id) and _only_deeper(code, language_id):
        return columns + 1
    return columns or None


def body_indent(head: str, above: str, language_id: str = "") -> int | None:
    """The same on an empty line in the empty body of ``above``, the line that opens the block."""
    if not head or not _only_deeper(above.strip(), language_id):
        return scope_indent(head, language_id)
    columns = indent_columns(above[: len(above) - len(above.lstrip())])
    return max(indent_columns(head), columns + 1)


def _only_deeper(code: str, language_id: str) -> bool:
    """Whether all lines of the block that ``code`` opens are deeper, closing brackets aside."""
    language = canonical(language_id)
    if language in _ENDED_BY_WORDS and not code.endswith(("{", "(", "[")):
        return False
    if language == "cpp" and _FLAT_CLASS.match(code):
        return False
    return _FLAT.match(code) is None
