"""Suggestions that would break a document that parses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.completion.filters.closing import closed
from lsp_server.completion.filters.closing_line import ends_block
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.suffix_overlap import CLOSING, second_closing
from lsp_server.completion.ranges import item_range
from lsp_server.documents.inside import inside
from lsp_server.documents.lexical import place_in_line
from lsp_server.documents.surroundings import Surroundings, faults

if TYPE_CHECKING:
    from tree_sitter import Node

# New faults in a document that had some: while it is being typed they come and go without meaning much.
TOLERATED = 2
# With more faults than this before, the grammar does not fit the text (a header of C++ opened as C).
MAX_BEFORE = 10
# Texts that are tried; each costs a parse of what it changes.
MAX_TRIES = 16


def syntax(text: str, context: FilterContext) -> str | None:
    """Close what the suggestion leaves open, or cut lines from its end, if it breaks the document otherwise.

    A document with faults is typed at, so more of them must be clearly more. None if no first line of the
    suggestion fits.
    """
    surroundings = context.surroundings
    if surroundings is None or not text.strip():
        return text
    if inside(surroundings.tree.root_node, surroundings.cursor) is None and _hides_code(text, context):
        return None
    before = surroundings.faults
    if before > MAX_BEFORE:
        return text
    trial = _Trial(surroundings, context)
    found = trial.faults(text)
    if found == 0:
        return text
    whole = trial.closed(text)
    if whole is not None and trial.faults(whole) <= min(before, found - 1):
        return whole
    if found <= trial.allowed or trial.only_ends_early(text):
        return text
    return _longest_that_fits(text, trial)


def _hides_code(text: str, context: FilterContext) -> bool:
    """Whether the text ends in a comment that takes in the code behind the cursor."""
    last = (context.head + text).rpartition("\n")[2]
    if not any(map(str.isalnum, context.rest)) or place_in_line(context.head, context.language_id) != "code":
        return False
    if place_in_line(last, context.language_id) != "comment":
        return False
    covered = item_range(len(context.head), text, context.rest, replaces_rest=context.replaces_rest).end
    return any(map(str.isalnum, context.rest[covered - len(context.head) :]))


def _longest_that_fits(text: str, trial: _Trial) -> str | None:
    lines = text.split("\n")
    for stop in range(len(lines) - 1, 0, -1):
        part = "\n".join(lines[:stop]).rstrip()
        if not part.strip() or trial.tries >= MAX_TRIES:
            break
        if trial.faults(part) <= trial.allowed:
            return part
        whole = trial.closed(part)
        if whole is not None and trial.faults(whole) <= trial.allowed:
            return whole
    context = trial.context
    if context.replaces_rest and CLOSING.fullmatch(rest := context.rest.strip()) and rest:
        # What a client gets that replaces nothing: up to the bracket behind the cursor.
        part = text[: second_closing(text, rest) or 0]
        if part.strip() and trial.faults(part) <= trial.allowed:
            return part
    return None


@dataclass
class _Trial:
    """The document with one text or another at the cursor."""

    surroundings: Surroundings
    context: FilterContext
    tries: int = 0

    @property
    def allowed(self) -> int:
        before = self.surroundings.faults
        return before + TOLERATED if before else 0

    def faults(self, text: str) -> int:
        return faults(self._root(text))

    def closed(self, text: str) -> str | None:
        """The text with what it opens closed, in the spelling that fits best; None if nothing is open."""
        context = self.context
        root, cursor = self.surroundings.tree.root_node, self.surroundings.cursor
        if place_in_line(context.head, context.language_id) != "code" or inside(root, cursor) is not None:
            return None
        rest = "" if ends_block(text, context) else context.rest
        spellings = closed(text, context.head, rest, context.language_id)
        return min(spellings, key=self.faults, default=None)

    def only_ends_early(self, text: str) -> bool:
        """Whether all that is wrong is one token (a semicolon, say) missing right behind the text.

        Not where the line goes on with a word: a head without a body does not go before another head.
        """
        if self.context.rest[:1].isalpha():
            return False
        root = self._root(text)
        end = self.surroundings.cursor + len(text.rstrip().encode("utf-8", "replace"))
        return faults(root) == 1 and _missing(root) == end

    def _root(self, text: str) -> Node:
        self.tries += 1
        context = self.context
        column = len(context.head)
        covered = item_range(column, text, context.rest, replaces_rest=context.replaces_rest).end - column
        return self.surroundings.inserted(text, covered).root_node


def _missing(node: Node) -> int | None:
    """Where the first token begins that the parser made up."""
    if node.is_missing:
        return node.start_byte
    for child in node.children:
        if child.has_error and (at := _missing(child)) is not None:
            return at
    return None
