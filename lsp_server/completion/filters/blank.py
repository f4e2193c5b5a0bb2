"""Suggestions without anything to read."""

from __future__ import annotations

from lsp_server.completion.filters.context import FilterContext


def blank(text: str, context: FilterContext) -> str | None:
    """None for white space only."""
    return text if text.strip() else None
