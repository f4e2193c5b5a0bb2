from __future__ import annotations

import pytest

from lsp_server.completion.filters import FilterContext
from lsp_server.completion.filters.separator import separator


@pytest.mark.parametrize(
    ("text", "rest", "below", "expected"),
    [
        ('age": 3,', '"', "}", 'age": 3'),
        ('"age": 3,', "", "]", '"age": 3'),
        ('"age": 3,', "}", "", '"age": 3'),
        ('"age": 3,', "", '"name": 1', '"age": 3,'),
        ('"age": 3', "", "}", '"age": 3'),
        (",", "", "}", None),
    ],
)
def test_no_comma_before_a_closing_bracket_in_json(
    text: str, rest: str, below: str, expected: str | None
) -> None:
    context = FilterContext(rest=rest, line_below=below, language_id="json", replaces_rest=True)
    assert separator(text, context) == expected


def test_other_languages_may_have_it() -> None:
    context = FilterContext(line_below="}", language_id="python", replaces_rest=True)
    assert separator('"age": 3,', context) == '"age": 3,'
