"""Suggestions that only say again what stands next to them."""

from __future__ import annotations

from lsp_server.completion.filters.context import FilterContext


def duplicate_line(text: str, context: FilterContext) -> str | None:
    """None if the suggestion makes the cursor's line a copy of a neighbour and adds nothing else;
    a last line that repeats the line below is cut off.

    Lines must be equally indented: the last statement of a block may be said again behind the block.
    Lines without a letter or digit (brackets) may repeat.
    """
    lines = text.split("\n")
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    if len(kept) > 1 and _same(kept[-1], context.line_below):
        kept.pop()
        return "\n".join(kept) if any(line.strip() for line in kept) else None
    first = context.head + lines[0] + context.rest
    if len(kept) == 1 and _same(first, context.line_above, context.line_below):
        return None
    return text


def _same(line: str, *neighbours: str) -> bool:
    return any(char.isalnum() for char in line) and line.rstrip() in (other.rstrip() for other in neighbours)
