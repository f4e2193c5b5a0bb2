"""Ends that the lines below the cursor give evidence of.

A model is not told whether a statement is missing or a whole body. It tends to write on to the end of the
block, past what already stands there. Three observations tell that it does:

- body: the text comes down to the depth of the line below, having begun less deep. What stands below is then
  the body of what was just written.
- unreachable: the text leaves the block ("return") in which the document goes on. So it has written its own
  version of what stands below, and only its first statement is to be believed.
- rejoins: a line of the text stands below in the same block. Before such a line the text has arrived in the
  document; if it is deeper, its statement is a version of one below, and again the first statement stays.

Indentation and a few words decide. Nothing is concluded where the line below ends the block of the text, as
it does behind a body that is still empty.
"""

from __future__ import annotations

import re

from inference.api import Below
from inference.lines import indent_columns, is_distinctive, line_columns

_JUMP = re.compile(r"(return|raise|throw|break|continue|goto)(?=[\s;(]|\Z)(?!\s*[=:])")
# "return if x", as in Ruby, leaves the block only sometimes.
_CONDITION = re.compile(r"\b(if|unless)\b(?!.*\belse\b)")
# What belongs to the statement above it.
_CONTINUES = re.compile(
    r"(else|elif|elsif|elseif|except|rescue|finally|ensure|catch|case|default|when|end)\b|[)\]}]"
)
# What belongs to the statement below it: comments, decorators, attributes.
_LEADS = re.compile(r"#|//|/\*|\*|--|@")
# Declarations that count wherever in their block they stand.
_HOISTED = re.compile(r"(async\s+)?function\b")
_OPENERS, _CLOSERS = "([{", ")]}"
_DOCSTRING = re.compile(r"\"\"\"|'''")


class BelowChecker:
    """Watches a text that grows line by line. Positions are indices of the whole text."""

    def __init__(self, below: Below) -> None:
        self._below = below
        self._target = below.lines[0].strip() if below.lines else ""
        self._target_columns = line_columns(below.lines[0]) if below.lines else 0
        self._first_columns: int | None = None  # of the text's first line
        self._in_block: frozenset[str] = frozenset()  # lines below that the text could arrive at
        self._has_code = False  # the first statement has begun
        self._first_leaves = False  # the first statement leaves the block
        self._statement_end: int | None = None  # where the first statement ends, once another one began
        self._leads_at: int | None = None  # where the comments began that lead to the line being written
        self._columns = 0  # of the line being written
        self._depth = 0  # of open brackets where it began
        self._above = ""  # the line of code before it

    def settled(self, line_start: int) -> int:
        """Length of text that no later line takes back; ``line_start``: of the line being written."""
        if self._statement_end is not None:
            return self._statement_end
        # Comments go with the statement below them, but nothing takes the first one back.
        return self._leads_at if self._has_code and self._leads_at is not None else line_start

    def line_begins(self, text: str, start: int, character: str, depth: int) -> int | None:
        """The first character of a line comes that is no blank; the place where the text ends, if it does.

        Args:
            text: what there is, the blanks before that character included.
            start: of the line.
            depth: of open brackets.
        """
        if not self._below.lines or (character == "`" and self._first_columns is None):
            return None  # a fence around code is no line of it
        indent = self._below.head if start == 0 and self._below.head.strip() else ""
        self._columns = line_columns(indent) if indent else self._blank_columns(text, start)
        self._depth = depth
        if self._first_columns is None:
            self._first_columns = self._columns
            self._in_block = self._block_below(self._columns)
        elif self._below.body and self._has_code and self._comes_down():
            return start
        return None

    def line_ends(self, text: str, start: int) -> int | None:
        """A line is complete; the place where the text ends, if it does."""
        if not self._below.lines or self._first_columns is None:
            return None
        line = text[start:].strip()
        if not line:
            return None
        if _LEADS.match(line):
            self._leads_at = start if self._leads_at is None else self._leads_at
            return None
        begins = start if self._leads_at is None else self._leads_at
        self._leads_at = None
        self._above = line
        first = not self._has_code
        self._has_code = True
        docstring = len(_DOCSTRING.findall(text, 0, start)) % 2 == 1
        if not first and not docstring and self._statement_end is None and self._begins_statement(line):
            self._statement_end = begins
            if self._first_leaves:
                return begins
        if docstring:
            return None
        if self._below.unreachable and self._leaves_block(
            self._below.head.lstrip() + line if start == 0 else line
        ):
            self._first_leaves = first  # it may take more lines
            return self._statement_end
        if self._below.rejoins and not first and self._rejoins(line):
            inside = self._same_block and self._columns > self._target_columns
            return self._statement_end if inside else begins
        return None

    @property
    def _same_block(self) -> bool:
        """Whether the text began as a statement beside the one below."""
        return self._first_columns == self._target_columns and not _CONTINUES.match(self._target)

    def _blank_columns(self, text: str, start: int) -> int:
        blanks = text[start:]
        return indent_columns(self._below.head + blanks if start == 0 else blanks)

    def _block_below(self, columns: int) -> frozenset[str]:
        lines = []
        for line in self._below.lines:
            if line_columns(line) < columns:
                break
            lines.append(line.rstrip())
        return frozenset(lines)

    def _comes_down(self) -> bool:
        assert self._first_columns is not None
        if self._first_columns >= self._target_columns or self._columns < self._target_columns:
            return False
        if _CONTINUES.match(self._target):
            return False
        # A line that goes on within brackets is no head of a body.
        above = self._above
        open_ = sum((c in _OPENERS) - (c in _CLOSERS) for c in above)
        return open_ <= 0 or above.endswith(tuple(_OPENERS))

    def _begins_statement(self, line: str) -> bool:
        assert self._first_columns is not None
        return self._columns <= self._first_columns and self._depth <= 0 and not _CONTINUES.match(line)

    def _leaves_block(self, line: str) -> bool:
        if not self._same_block or self._columns != self._target_columns or self._depth > 0:
            return False
        return bool(_JUMP.match(line)) and not _CONDITION.search(line) and not _HOISTED.match(self._target)

    def _rejoins(self, line: str) -> bool:
        if not is_distinctive(line) or _JUMP.match(line):
            return False
        return any(
            below.lstrip() == line and line_columns(below) == self._columns for below in self._in_block
        )
