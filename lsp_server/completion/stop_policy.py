"""Which lines below the cursor tell where a suggestion ends.

A suggestion in an empty body is to be the whole body; one in the middle of a block is mostly one statement.
The document shows which it is: see `inference.below` for the conclusions, each with a name of its own.
"""

from __future__ import annotations

from inference.api import Below
from lsp_server.documents.line_index import strip_eol
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot

# Names by which the conclusions are left out.
BODY_BELOW = "body-below"
UNREACHABLE = "unreachable"
REJOINS = "rejoins"
NAMES = (BODY_BELOW, UNREACHABLE, REJOINS)

# Lines that are not blank, and how far down they are looked for. A text that arrives further down has skipped
# more than it wrote.
LINES_BELOW = 10
_FAR = 20
# Longer lines are data, and no text arrives at them.
_MAX_LINE = 500

# Words like "return" mean nothing here, and entries of lists look alike.
_NO_CODE = frozenset(
    {
        "plaintext",
        "markdown",
        "mdx",
        "quarto",
        "rmd",
        "restructuredtext",
        "asciidoc",
        "latex",
        "tex",
        "gitcommit",
        "git-commit",
        "html",
        "xml",
        "json",
        "jsonc",
        "csv",
    }
)


def below_cursor(snapshot: Snapshot, cursor: Point, off: frozenset[str]) -> Below | None:
    """The lines below, None if nothing is to be concluded from them.

    Args:
        cursor: column in characters.
        off: names of conclusions that are not drawn.
    """
    line = snapshot.line(cursor.line)
    if line[cursor.column :].strip() or snapshot.language_id in _NO_CODE or off.issuperset(NAMES):
        return None
    lines: list[str] = []
    for number in range(cursor.line + 1, min(cursor.line + 1 + _FAR, len(snapshot.lines))):
        below = strip_eol(snapshot.lines[number]).rstrip()
        if below:
            lines.append(without_surrogates(below[:_MAX_LINE]))
        if len(lines) == LINES_BELOW:
            break
    if not lines:
        return None
    return Below(
        head=without_surrogates(line[: cursor.column]),
        lines=tuple(lines),
        body=BODY_BELOW not in off,
        unreachable=UNREACHABLE not in off,
        rejoins=REJOINS not in off,
    )
