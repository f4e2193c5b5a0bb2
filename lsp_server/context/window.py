"""The part of a document that goes into the prompt.

Two things decide latency here. What is re-read at every key: the prompt's common token prefix with the
last request is free, so the window must begin at the same place while the user types. And what is
tokenised: only a bounded neighbourhood of the cursor, whatever the size of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lsp_server.context.auto_closed import is_auto_closed
from lsp_server.documents.line_index import to_lf
from lsp_server.documents.text import Point, Snapshot

# A start line is a multiple of a power of two up to this.
MAX_BLOCK = 64
# The cursor's line is given room in steps of so many tokens.
HEAD_STEP = 32
# Upper bound on characters per token before a line counts as too long to be looked at.
_CHARS_PER_TOKEN = 8
# Lower bound in the estimate that sizes blocks; code has 3 to 4 characters a token.
_USUAL_CHARS_PER_TOKEN = 3


@dataclass(frozen=True)
class Budget:
    """Tokens for the parts of the prompt, control tokens not counted.

    Attributes:
        prefix: text before the cursor; the text of the current line included.
        suffix: text after the cursor.
    """

    prefix: int
    suffix: int

    @classmethod
    def split(cls, total: int, prefix_share: float = 0.75, max_suffix: int | None = None) -> Budget:
        """Shares of ``total`` tokens. The suffix is read anew for each line: ``max_suffix`` bounds it."""
        suffix = max(0, total - max(1, int(total * prefix_share)))
        if max_suffix is not None:
            suffix = min(suffix, max_suffix)
        return cls(total - suffix, suffix)


@dataclass(frozen=True)
class Window:
    """Text around the cursor with ``\\n`` line ends; ``above + middle + head`` is the prefix.

    Attributes:
        above: whole lines above the cursor's line.
        head: the cursor's line up to the cursor.
        suffix: the rest of the cursor's line and whole lines below it. Closing brackets and quotes that the
            editor wrote by itself are no part of it (context/auto_closed.py).
        first_line: line at which ``above`` begins.
        stop_line: first line below the window.
        middle: whole lines between ``above`` and ``head`` that are shown as the begin of the answer.
    """

    above: str
    head: str
    suffix: str
    first_line: int
    stop_line: int
    middle: str = ""

    @property
    def middle_lines(self) -> int:
        """Number of lines in ``middle``."""
        return self.middle.count("\n")


def choose(
    snapshot: Snapshot, cursor: Point, budget: Budget, count: Callable[[str], int], kept: int = 0
) -> Window:
    """The window around ``cursor`` (column in characters) within ``budget``.

    ``count`` gives the tokens of one line; summed over lines it is close to the tokens of the whole,
    not always above them, so the caller still makes the parts fit (prompts/fit.py). ``kept`` tokens of the
    prefix are left for lines above the window. They do not change by how many lines it slides: smaller
    steps would mean more of them, and each is a new prompt.
    """
    line = snapshot.lines[cursor.line]
    head = _bounded_head(line[: cursor.column], budget.prefix)
    room = budget.prefix - kept - _reserved(count(head), budget.prefix)
    first = _first_line(snapshot, cursor.line, room, budget.prefix, count)
    suffix, stop = _suffix(snapshot, cursor, budget.suffix, count)
    return Window(snapshot.lf(first, cursor.line), head, suffix, first, stop)


def _bounded_head(head: str, limit: int) -> str:
    """The end of a very long line, cut at a step so that the cut stays while the user types on."""
    most = 2 * limit
    if len(head) <= most:
        return head
    step = max(1, limit // 2)
    excess = len(head) - most
    return head[-(-excess // step) * step :]


def _reserved(tokens: int, limit: int) -> int:
    """Room for the cursor's line: more than it takes, so that the window does not move at each key.

    Half a word often takes more tokens than the whole one, so an exact count would go up and down.
    """
    step = max(1, min(HEAD_STEP, limit // 16))
    return (tokens // step + 1) * step


def _first_line(snapshot: Snapshot, line: int, room: int, limit: int, count: Callable[[str], int]) -> int:
    longest = limit * _CHARS_PER_TOKEN
    first = line
    while first > 0:
        above = snapshot.lines[first - 1]
        if len(above) > longest:
            break
        room -= count(to_lf(above))
        if room < 0:
            break
        first -= 1
    if first == 0:
        return 0
    block = _block(snapshot, line, limit)
    return min(line, -(-first // block) * block)


def _block(snapshot: Snapshot, line: int, limit: int) -> int:
    """Lines by which the start moves: a power of two of about a quarter of the budget.

    Measured on lines above the cursor's 64-line block only, so that typing does not change it.
    """
    stop = line - line % MAX_BLOCK or line
    sample = snapshot.lines[max(0, stop - 4 * MAX_BLOCK) : stop]
    mean = max(1.0, sum(map(len, sample)) / max(1, len(sample)))
    lines = limit * _USUAL_CHARS_PER_TOKEN / mean / 4
    block = 1
    while block < MAX_BLOCK and block * 2 <= lines:
        block *= 2
    return block


def _suffix(snapshot: Snapshot, cursor: Point, limit: int, count: Callable[[str], int]) -> tuple[str, int]:
    if limit <= 0:
        return "", cursor.line
    line = to_lf(snapshot.lines[cursor.line])
    rest = line[cursor.column :]
    if is_auto_closed(line[: cursor.column], rest):
        rest = "\n" if rest.endswith("\n") else ""
    if len(rest) > 2 * limit:
        return rest[: 2 * limit], cursor.line
    room = limit - count(rest)
    stop = cursor.line + 1
    while stop < len(snapshot.lines) and len(snapshot.lines[stop]) <= limit * _CHARS_PER_TOKEN:
        room -= count(to_lf(snapshot.lines[stop]))
        if room < 0:
            break
        stop += 1
    return rest + snapshot.lf(cursor.line + 1, stop), stop
