"""Comments by language."""

from __future__ import annotations

import pytest

from lsp_server.documents import languages
from lsp_server.documents.comments import line_comment


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "x = 1", "# x = 1"),
        ("go", "", "//"),
        ("sql", "drop  ", "-- drop"),
        ("css", "a { }", "/* a { } */"),
        ("css", "/* b */ c", "/* /* b  c */"),
        ("html", "<p>-->", "<!-- <p> -->"),
        ("typescriptreact", "    return", "//     return"),
    ],
)
def test_a_line_as_a_comment(language: str, text: str, expected: str) -> None:
    comment = line_comment(language)
    assert comment is not None
    assert comment.wrap(text) == expected


def test_languages_that_files_are_recognised_by_have_comments() -> None:
    without = {language for language in languages._BY_SUFFIX.values() if line_comment(language) is None}
    assert without <= {"json", "diff", "plaintext", "csv", "tsv", "log"}
    assert line_comment("plaintext") is None
