"""Line index, position encodings, edits: against plain definitions of each."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.completion.reasons import Reason
from lsp_server.documents.line_index import dominant_eol, split_lines, strip_eol, to_lf
from lsp_server.documents.positions import (
    ENCODINGS,
    PositionEncoding,
    join_surrogates,
    to_index,
    to_units,
    without_surrogates,
)
from lsp_server.documents.store import DocumentStore, Withheld
from lsp_server.documents.text import Change, Document, Point, Snapshot, locate

CHARS = st.sampled_from([*"ab\t é€\u2028\x0c\x85😀𝒳\ud83d", "👩\u200d👧"])
LINE = st.lists(CHARS, max_size=8).map("".join).map(join_surrogates)
TEXT = st.lists(st.one_of(CHARS, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20).map("".join)
ENCODING = st.sampled_from(ENCODINGS)


def width(char: str, encoding: PositionEncoding) -> int:
    if encoding == "utf-32":
        return 1
    if encoding == "utf-16":
        return 2 if ord(char) > 0xFFFF else 1
    return len(char.encode("utf-8", "surrogatepass"))


@given(LINE, st.integers(-3, 60), ENCODING)
def test_index_is_the_last_character_start_not_past_the_column(
    line: str, units: int, encoding: PositionEncoding
) -> None:
    expected, column = 0, 0
    for index, char in enumerate(line):
        column += width(char, encoding)
        if column <= units:
            expected = index + 1
    assert to_index(line, units, encoding) == expected


@given(LINE, ENCODING)
def test_units_and_index_are_inverse(line: str, encoding: PositionEncoding) -> None:
    for index in range(len(line) + 1):
        units = to_units(line, index, encoding)
        assert units == sum(width(char, encoding) for char in line[:index])
        assert to_index(line, units, encoding) == index
    assert to_units(line, len(line) + 5, encoding) == to_units(line, len(line), encoding)


@given(TEXT)
def test_lines_join_to_the_text_and_end_only_where_lsp_says(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert [strip_eol(line) for line in lines] == re.split(r"\r\n|\n|\r", text)
    assert "\r" not in "".join(map(to_lf, lines))


def test_form_feed_and_unicode_separators_end_no_line() -> None:
    text = "a\x0cb\u2028c\u2029d\x85e\x0bf\x1cg"
    assert split_lines(text) == [text]
    assert Snapshot.of(text).locate(Point(0, 9), "utf-16") == Point(0, 9)


def test_dominant_eol() -> None:
    assert dominant_eol(split_lines("a\r\nb\r\nc\n")) == "\r\n"
    assert dominant_eol(split_lines("a")) == "\n"


@given(TEXT, st.lists(st.tuples(*[st.integers(0, 6)] * 4, TEXT), max_size=6), ENCODING)
def test_edits_equal_splicing_the_whole_text(
    text: str, edits: list[tuple[int, int, int, int, str]], encoding: PositionEncoding
) -> None:
    document = Document("file:///x", 1, "python", text)
    whole = join_surrogates(text)
    for number, (line, column, end_line, end_column, new) in enumerate(edits):
        lines = split_lines(whole)
        points = sorted(
            (locate(lines, Point(*at), encoding) for at in ((line, column), (end_line, end_column))),
            key=lambda point: (point.line, point.column),
        )
        start, end = (sum(map(len, lines[: at.line])) + at.column for at in points)
        whole = join_surrogates(whole[:start] + new + whole[end:])
        change = Change(new, Point(line, column), Point(end_line, end_column))
        document.apply(number + 2, [change], encoding)
        assert list(document.snapshot().lines) == split_lines(whole)


def test_a_snapshot_does_not_change() -> None:
    document = Document("file:///x", 1, "python", "a\nb\n")
    before = document.snapshot()
    assert document.snapshot() is before
    document.apply(2, [Change("X", Point(0, 0), Point(1, 0))], "utf-16")
    assert before.lines == ("a\n", "b\n", "")
    assert document.snapshot().lines == ("Xb\n", "")
    document.apply(3, [Change("all\rnew")], "utf-16")
    assert document.snapshot().lines == ("all\r", "new")
    assert document.snapshot().lf(0, 2) == "all\nnew"


def test_halves_of_a_pair_sent_apart_become_one_character() -> None:
    document = Document("file:///x", 1, "python", "a\ud83d")
    document.apply(2, [Change("\ude00", Point(0, 2), Point(0, 2))], "utf-16")
    assert document.snapshot().lines == ("a😀",)
    assert without_surrogates("a\ud83db") == "a\ufffdb"


def test_store_keeps_no_excluded_and_no_oversized_text() -> None:
    store = DocumentStore(max_chars=10)
    store.open("a", 1, "python", "x" * 11)
    store.open("b", 1, "python", "secret", excluded=True)
    store.open("c", 1, "python", "x")
    assert len(store) == 1
    for uri, reason in (("a", Reason.TOO_LARGE), ("b", Reason.EXCLUDED), ("d", Reason.UNKNOWN_DOCUMENT)):
        with pytest.raises(Withheld) as caught:
            store.get(uri)
        assert caught.value.reason is reason
    store.change("b", 2, [Change("more")])
    store.change("d", 2, [Change("more")])
    assert store.version("b") is None
    store.withhold("c", Reason.EXCLUDED)
    store.close("b")
    assert store.version("c") is None


def test_a_long_last_line_behind_a_carriage_return_is_split_in_one_pass() -> None:
    # Quadratic work would take hours here.
    assert split_lines("a\r\n" + "x" * 5_000_000) == ["a\r\n", "x" * 5_000_000]
