"""The streaming diff: right, final and early."""

from __future__ import annotations

import random

import pytest

from lsp_server.inline_edit.diff import Hunk, OpenHunk, Span, StreamingDiff, apply, changed_spans

OLD = ["def area(w, h):", "    size = w * h", "    return size", "", "def name():", "    return 'x'"]


def stream(old: list[str], new: list[str]) -> StreamingDiff:
    diff = StreamingDiff(old)
    for line in new:
        diff.push(line)
    diff.finish()
    return diff


@pytest.mark.parametrize(
    ("new", "hunks"),
    [
        (OLD, []),
        (["def area(width, h):", *OLD[1:]], [Hunk(0, 1, ("def area(width, h):",))]),
        ([*OLD[:1], "    # how large", *OLD[1:]], [Hunk(1, 1, ("    # how large",))]),
        ([*OLD[:2], *OLD[3:]], [Hunk(2, 3, ())]),
        ([*OLD, "", "end()"], [Hunk(6, 6, ("", "end()"))]),
        (OLD[:3], [Hunk(3, 6, ())]),
        ([], [Hunk(0, 6, ())]),
        (["a = 1", "b = 2"], [Hunk(0, 6, ("a = 1", "b = 2"))]),
        (["x", *OLD[1:5], "y"], [Hunk(0, 1, ("x",)), Hunk(5, 6, ("y",))]),
    ],
)
def test_hunks(new: list[str], hunks: list[Hunk]) -> None:
    diff = stream(OLD, new)
    assert diff.hunks == hunks
    assert apply(OLD, diff.hunks) == new


def test_a_hunk_is_closed_by_the_first_old_line_behind_it() -> None:
    diff = StreamingDiff(OLD)
    assert diff.push("def area(width, height):") is None
    assert diff.open == OpenHunk(0, ("def area(width, height):",))
    assert diff.push("    size = w * h") == Hunk(0, 1, ("def area(width, height):",))
    assert diff.open is None and diff.kept == 2


def test_a_line_that_may_be_an_old_one_is_not_shown_as_new() -> None:
    diff = StreamingDiff(["{", "a()", "}", "}"])
    diff.push("{")
    diff.push("new()")
    diff.push("}")
    assert diff.open == OpenHunk(1, ("new()",))


def test_a_common_line_alone_does_not_close() -> None:
    old = ["if a:", "    x()", "else:", "    y()", "", "if b:", "    z()", ""]
    diff = StreamingDiff(old)
    diff.push("while a:")
    assert diff.push("") is None
    assert diff.push("if b:") is not None


def test_blanks_on_empty_lines_are_no_difference() -> None:
    assert stream(["a", "   ", "b"], ["a", "", "b"]).hunks == []


def test_random_edits_apply_and_nothing_reported_is_taken_back() -> None:
    generator = random.Random(0)
    words = ["a = 1", "b = 2", "", "}", "return value", "    if x:", "call(a, b)", "# word"]
    changed = 0
    for _ in range(3000):
        old = [generator.choice(words) for _ in range(generator.randrange(12))]
        new = list(old)
        for _ in range(generator.randrange(4)):
            place = generator.randrange(len(new) + 1)
            new[place : place + generator.randrange(3)] = generator.choices(words, k=generator.randrange(3))
        diff, reported, shown = StreamingDiff(old), [], None
        for line in new:
            closed = diff.push(line)
            if shown is not None and diff.open is not None and diff.open.start == shown.start:
                assert diff.open.lines[: len(shown.lines)] == shown.lines
            if closed is not None:
                reported.append(closed)
                if shown is not None:
                    assert closed.start == shown.start and closed.lines[: len(shown.lines)] == shown.lines
            shown = diff.open
        last = diff.finish()
        if shown is not None:
            assert last is not None and last.start == shown.start
            assert last.lines[: len(shown.lines)] == shown.lines
        assert diff.hunks == [*reported, *([last] if last else [])]
        assert apply(old, diff.hunks) == new
        assert all(one.stop <= two.start for one, two in zip(diff.hunks, diff.hunks[1:], strict=False))
        changed += old != new
    assert changed > 1500


def test_changed_spans_name_the_new_tokens() -> None:
    spans = changed_spans(["return w * h"], ["return width * h"])
    assert spans == [Span(0, 7, 12)]
    assert changed_spans(["a"], ["a"]) == []


def test_a_large_hunk_is_not_compared_token_by_token() -> None:
    old, new = ["a b " * 600], ["c d " * 600, "", "x"]
    assert changed_spans(old, new) == [Span(0, 0, 2400), Span(2, 0, 1)]
