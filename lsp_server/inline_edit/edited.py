"""A document before and after an edit, for checks that compare the two."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lsp_server.documents.syntax import MAX_CHARS, parser_for
from lsp_server.documents.text import Snapshot

if TYPE_CHECKING:
    from tree_sitter import Node


class Edited:
    """Each side is parsed once, when a check first asks for it.

    Attributes:
        snapshot: the document before.
        text: the whole document afterwards, with ``\\n`` as line ends.
    """

    def __init__(self, snapshot: Snapshot, text: str) -> None:
        self.snapshot = snapshot
        self.text = text

    @cached_property
    def before(self) -> Node | None:
        """The root of the tree before; None for a language without a grammar and for too long a text."""
        return self._root(self.snapshot.lf(0, len(self.snapshot.lines)))

    @cached_property
    def after(self) -> Node | None:
        """The same afterwards; None where ``before`` is."""
        return self._root(self.text)

    def _root(self, text: str) -> Node | None:
        parser = parser_for(self.snapshot.language_id)
        if parser is None or len(self.text) > MAX_CHARS:
            return None
        return parser.parse(text.encode("utf-8", "replace")).root_node
