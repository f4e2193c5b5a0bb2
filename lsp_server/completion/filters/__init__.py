"""Filters: pure functions from the model's text to the text to show."""

from __future__ import annotations

from lsp_server.completion.filters.blank import blank
from lsp_server.completion.filters.brackets import brackets
from lsp_server.completion.filters.closing_line import closing_line
from lsp_server.completion.filters.context import Filter, FilterContext
from lsp_server.completion.filters.control import control
from lsp_server.completion.filters.duplicate_line import duplicate_line
from lsp_server.completion.filters.fences import fences
from lsp_server.completion.filters.indent_unit import indent_unit
from lsp_server.completion.filters.indentation import indentation
from lsp_server.completion.filters.min_value import min_value
from lsp_server.completion.filters.repeats_above import repeats_above
from lsp_server.completion.filters.repeats_suffix import repeats_suffix
from lsp_server.completion.filters.repetition import repetition
from lsp_server.completion.filters.scope_end import scope_end
from lsp_server.completion.filters.separator import separator
from lsp_server.completion.filters.sibling_definition import sibling_definition
from lsp_server.completion.filters.similar_suffix import similar_suffix
from lsp_server.completion.filters.suffix_overlap import suffix_overlap
from lsp_server.completion.filters.syntax import syntax
from lsp_server.completion.filters.token_repetition import token_repetition
from lsp_server.completion.filters.trailing_space import trailing_space

# In order: what is no code comes off first, and indentation is put right before lines are compared; cuts come
# before the judgement whether what is left is worth showing.
FILTERS: dict[str, Filter] = {
    "control": control,
    "fences": fences,
    "indent-unit": indent_unit,
    "indentation": indentation,
    "token-repetition": token_repetition,
    "repetition": repetition,
    "repeats-above": repeats_above,
    "scope-end": scope_end,
    "sibling-definition": sibling_definition,
    "trailing-space": trailing_space,
    "repeats-suffix": repeats_suffix,
    "suffix-overlap": suffix_overlap,
    "separator": separator,
    "similar-suffix": similar_suffix,
    "brackets": brackets,
    "duplicate-line": duplicate_line,
    "syntax": syntax,
    "closing-line": closing_line,
    "blank": blank,
    "min-value": min_value,
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
