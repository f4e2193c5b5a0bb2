"""What a filter may look at besides the suggestion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lsp_server.documents.surroundings import Surroundings


@dataclass(frozen=True)
class FilterContext:
    """Text around the cursor, with ``\\n`` line ends.

    Attributes:
        head: the cursor's line up to the cursor.
        rest: the cursor's line after the cursor, without its line end.
        line_above: the nearest line above the cursor's that is not blank.
        line_below: the nearest line below the cursor's that is not blank.
        lines_above: lines above the cursor's, blank ones too, the nearest last; no line ends.
        lines_below: lines below the cursor's, blank ones too, the nearest first; no line ends.
        from_start: ``lines_above`` are all lines above the cursor's.
        indent_unit: one level of indentation around the cursor, a tab or some spaces; empty where unclear.
        language_id: the client's language identifier.
        replaces_rest: the client replaces the text after the cursor if the item's range asks for it.
        off: names of filters that are left out.
        before: the document up to the cursor, as far as it is looked at (see documents/surroundings.py);
            ends with ``head``.
        after: the document from the cursor on, begins with ``rest``. Both are "" if neither is looked at.
    """

    head: str = ""
    rest: str = ""
    line_above: str = ""
    line_below: str = ""
    lines_above: tuple[str, ...] = ()
    lines_below: tuple[str, ...] = ()
    from_start: bool = False
    indent_unit: str = ""
    language_id: str = ""
    replaces_rest: bool = False
    off: frozenset[str] = frozenset()
    before: str = ""
    after: str = ""

    @cached_property
    def surroundings(self) -> Surroundings | None:
        """``before`` and ``after`` with their tree, None if the language has no grammar."""
        return Surroundings.of(self.language_id, self.before, self.after)


# A filter returns the text to show, changed or not, or None to show nothing.
Filter = Callable[[str, FilterContext], "str | None"]
