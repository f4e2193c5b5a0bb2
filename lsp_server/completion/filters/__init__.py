"""Filters: pure functions from the model's text to the text to show."""

from __future__ import annotations

from lsp_server.completion.filters.blank import blank
from lsp_server.completion.filters.context import Filter, FilterContext
from lsp_server.completion.filters.duplicate_line import duplicate_line
from lsp_server.completion.filters.fences import fences
from lsp_server.completion.filters.indentation import indentation
from lsp_server.completion.filters.repetition import repetition
from lsp_server.completion.filters.scope_end import scope_end
from lsp_server.completion.filters.suffix_overlap import suffix_overlap
from lsp_server.completion.filters.syntax import syntax
from lsp_server.completion.filters.trailing_space import trailing_space

# In order: wrappers come off first, cuts come before the judgement whether anything is left.
FILTERS: dict[str, Filter] = {
    "fences": fences,
    "indentation": indentation,
    "repetition": repetition,
    "scope-end": scope_end,
    "trailing-space": trailing_space,
    "suffix-overlap": suffix_overlap,
    "duplicate-line": duplicate_line,
    "syntax": syntax,
    "blank": blank,
}

__all__ = ["FILTERS", "Filter", "FilterContext", "run_filters"]


def run_filters(text: str, context: FilterContext) -> tuple[str | None, str]:
    """The text to show, or None and the name of the filter that dropped it."""
    for name, function in FILTERS.items():
        if name in context.off:
            continue
        kept = function(text, context)
        if kept is None:
            return None, name
        text = kept
    return text, ""
