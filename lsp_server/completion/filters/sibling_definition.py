"""Definitions that nobody asked for, behind the end of what the cursor stands in."""

from __future__ import annotations

from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.definitions import begins_definition, leads_definition
from lsp_server.completion.filters.line_match import columns


def sibling_definition(text: str, context: FilterContext) -> str | None:
    """Cut before a definition outside of the one that the cursor stands in, with the comments and
    decorators before it; None if nothing is left.

    Outside is what is indented less than the cursor's line. A definition that is begun on that line, or
    by the suggestion's first one, may be finished, and the next one at its depth is cut. A definition
    without a body, as in an interface, ends nothing.
    """
    lines = text.split("\n")
    whole = [context.head + lines[0], *lines[1:]]
    first = next((number for number, line in enumerate(whole) if line.strip()), None)
    if first is None:
        return text
    base = columns(whole[first])
    begun = begins_definition(whole[first], context.language_id)
    has_body = False
    # Decorators and comments at the suggestion's beginning belong to the definition that follows them.
    open = not begun and leads_definition(whole[first])
    for number in range(first + 1, len(whole)):
        line = whole[number]
        if not line.strip():
            continue
        depth = columns(line)
        if depth > base:
            has_body = begun
            continue
        if not begins_definition(line, context.language_id):
            open = open and leads_definition(line)
            continue
        if depth == base and open:
            begun, open = True, False
        elif depth < base or (begun and has_body):
            return _cut(lines, number, first)
    return text


def _cut(lines: list[str], number: int, first: int) -> str | None:
    depth = columns(lines[number])
    while number > first + 1:
        before = lines[number - 1]
        if before.strip() and not (leads_definition(before) and columns(before) >= depth):
            break
        number -= 1
    return "\n".join(lines[:number]).rstrip() or None
