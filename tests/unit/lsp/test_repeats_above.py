"""The filter against its definition, and its cost on text that repeats itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inference.lines import is_distinctive
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.repeats_above import MIN_DISTINCTIVE, MIN_LINES, repeats_above

LINES = st.lists(st.sampled_from(["", "a", "first_line", "second_line", "first_l", "}"]), max_size=14)


def _by_definition(text: str, context: FilterContext) -> str | None:
    """Every start and every size, compared line by line."""
    above = [line for line in context.lines_above if line]
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if line]
    written = [lines[number] for number in filled]
    for start, number in enumerate(filled):
        before = [*above, *written[:start]]
        for size in range(MIN_LINES, len(written) - start + 1):
            copy, rest = written[start : start + size], written[start + size :]
            expected = [copy[at % size] for at in range(len(rest))]
            goes_on = rest[:-1] == expected[:-1] and (not rest or expected[-1].startswith(rest[-1]))
            if before[-size:] == copy and sum(map(is_distinctive, copy)) >= MIN_DISTINCTIVE and goes_on:
                return "\n".join(lines[:number]).rstrip() or None
    return text


@given(LINES, LINES.filter(lambda lines: not lines or lines[0] != ""))
def test_it_is_as_defined(above: list[str], written: list[str]) -> None:
    context = FilterContext(lines_above=tuple(above))
    text = "\n".join(written)
    assert repeats_above(text, context) == _by_definition(text, context)


def test_repetitive_text_costs_no_more_than_its_length() -> None:
    compared = 0

    class Line(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

        def rstrip(self, characters: str | None = None) -> str:
            return self

    class Text(str):
        def split(self, *_: object, **__: object) -> list[str]:  # type: ignore[override]
            return [Line("x") for _ in range(300)]

    above = FilterContext(lines_above=tuple(Line("x") for _ in range(60)))
    text = Text("x")
    assert repeats_above(text, above) is text
    assert compared < 30_000
