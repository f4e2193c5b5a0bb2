"""The indentation of a selection: taken off before the model sees it, and put back line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Layout:
    """Attributes:
    margin: white space that every line of the selection begins with, blank lines aside.
    first: what the first line that is not blank has beyond it.
    tabs: the selection indents with tabs only.
    """

    margin: str
    first: str
    tabs: bool

    @classmethod
    def of(cls, lines: Sequence[str]) -> Layout:
        """Of the lines of a selection."""
        indents = [_indent(line) for line in lines if line.strip()]
        margin = reduce(_shared, indents) if indents else ""
        tabs = any(indents) and all(set(indent) <= {"\t"} for indent in indents)
        return cls(margin, indents[0][len(margin) :] if indents else "", tabs)

    def shown(self, lines: Sequence[str]) -> list[str]:
        """The lines as the model sees them."""
        return [line[len(self.margin) :] if line.strip() else "" for line in lines]


class Restorer:
    """Gives the lines of an answer the selection's indentation.

    The first line that is not blank says how the model indented: as shown, as in the document, or by
    something of its own, which is then taken off all lines.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._drop: str | None = None  # to be taken off each line; None before the first one
        self._add = ""

    def restore(self, line: str) -> str:
        """One line of the answer as it goes into the document."""
        if not line.strip():
            return ""
        line = self._with_tabs(line)
        indent = _indent(line)
        if self._drop is None:
            self._anchor(indent)
        drop = self._drop or ""
        shared = _shared(indent, drop)
        return self._layout.margin + self._add + line[len(shared) :]

    def _anchor(self, indent: str) -> None:
        first = self._layout.first
        if indent.startswith(first):
            self._drop = indent[: len(indent) - len(first)]
        else:
            self._drop = ""
            if first.startswith(indent):
                self._add = first[len(indent) :]

    def _with_tabs(self, line: str) -> str:
        if not self._layout.tabs:
            return line
        indent = _indent(line)
        return indent.replace("    ", "\t") + line[len(indent) :]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _shared(first: str, second: str) -> str:
    """What both begin with."""
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return first[:length]
