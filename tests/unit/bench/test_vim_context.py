"""What llama.vim sends of a document, remembers, and shows of an answer."""

from __future__ import annotations

import pytest

from bench.peers.vim_context import ResultCache, VimContext, context_after, context_at
from bench.peers.vim_suggestion import render

NUMBERED = [f"line {number}" for number in range(400)]


def _typed(text: str) -> VimContext:
    return VimContext("above\n", text, "\nbelow\n", "", 0)


class TestContext:
    def test_256_lines_above_and_64_below(self) -> None:
        context = context_at(NUMBERED, 300, 4)
        assert context.prefix == "\n".join(NUMBERED[44:300]) + "\n"
        assert context.middle == "line"
        assert context.suffix == " 300\n" + "\n".join(NUMBERED[301:365]) + "\n"
        assert context.right == " 300"

    def test_at_the_ends_of_a_document(self) -> None:
        context = context_at(["x = 1"], 0, 5)
        assert (context.prefix, context.middle, context.suffix) == ("\n", "x = 1", "\n\n")

    def test_a_blank_line_begins_at_its_first_column(self) -> None:
        context = context_at(["def f():", "    \t", "g()"], 1, 5)
        assert (context.prefix, context.middle, context.suffix) == ("def f():\n", "", "\ng()\n")
        assert context.indent == 0

    def test_the_indent_is_the_lines_own(self) -> None:
        assert context_at(["\t  x"], 0, 2).indent == 3

    def test_behind_one_shown_line(self) -> None:
        context = context_after(["a", "x = ", "b"], 1, ["y + 1"], 4)
        assert (context.prefix, context.middle, context.suffix) == ("a\n", "x = y + 1", "\nb\n")
        assert context.indent == 4

    def test_behind_several_shown_lines_it_is_what_the_next_request_sends(self) -> None:
        shown = ["of f", "two", "three"]
        accepted = [*NUMBERED[:301], *shown[1:], *NUMBERED[301:]]
        accepted[300] += shown[0]
        assert context_after(NUMBERED, 300, shown, 0) == context_at(accepted, 302, len("three"))


class TestCache:
    def test_a_view_scrolled_by_up_to_three_lines_has_the_same_key(self) -> None:
        whole = VimContext("1\n2\n3\n4\n5\n", "x", "\n", "", 0)
        for count in range(4):
            scrolled = VimContext("".join(f"{n}\n" for n in range(1 + count, 6)), "x", "\n", "", 0)
            assert scrolled.cache_keys()[0] in whole.cache_keys()
        assert VimContext("5\n", "x", "\n", "", 0).cache_keys()[0] not in whole.cache_keys()

    def test_text_before_and_behind_the_cursor_are_told_apart(self) -> None:
        one, other = VimContext("a\n", "bc", "d\n", "d", 0), VimContext("a\n", "b", "cd\n", "cd", 0)
        assert one.cache_keys()[0] != other.cache_keys()[0]

    def test_the_rest_of_an_answer_that_is_typed_along(self) -> None:
        cache = ResultCache()
        cache.put(_typed("x = ").cache_keys(), "value\nmore")
        assert cache.typed_along(_typed("x = val")) == "ue\nmore"
        assert cache.typed_along(_typed("x = var")) is None
        assert cache.typed_along(_typed("x = value\nmore")) is None  # nothing is left

    def test_the_longest_rest_wins(self) -> None:
        cache = ResultCache()
        cache.put(_typed("x").cache_keys(), " = 1 + 2")
        cache.put(_typed("x = ").cache_keys(), "1")
        assert cache.typed_along(_typed("x = ")) == "1 + 2"

    def test_answers_are_looked_for_128_characters_back_and_no_further(self) -> None:
        cache = ResultCache()
        cache.put(_typed("").cache_keys(), "y" * 200)
        assert cache.typed_along(_typed("y" * 128)) == "y" * 72
        assert cache.typed_along(_typed("y" * 129)) is None

    def test_the_least_recently_used_goes_first(self) -> None:
        cache = ResultCache(size=2)
        cache.put([b"a"], "1")
        cache.put([b"b"], "2")
        cache.get(b"a")
        cache.put([b"c"], "3")
        assert [cache.get(key) for key in (b"a", b"b", b"c")] == ["1", None, "3"]


@pytest.mark.parametrize(
    ("content", "document", "text", "reason"),
    [
        ("y + z", "x = |\nb", "y + z", ""),
        ("y\n\n\n", "x = |", "y", ""),
        ("y\n    z", "x = |", "y\n    z", ""),
        ("", "x = |", "", "empty"),
        ("\n\n", "x = |", "", "empty"),
        ("  ", "x = |", "", "blank"),
        (")", "f(|)", "", "repeats the rest of the line"),
        ("a)", "f(|)", "a)", ""),
        ("\nb\nc", "x|\nb\nc\nd", "", "repeats the next lines"),
        ("\nb\nq", "x|\nb\nc\nd", "\nb\nq", ""),
        (" = 1", "x|\n\n  \nx = 1\nd", "", "repeats the next line"),
        (" = 1\nd", "x|\nx = 1\nd + 1", "", "repeats the next lines"),
        (" = 1\ne", "x|\nx = 1\nd + 1", " = 1\ne", ""),
        (" = 1\nd\ne", "x|\n\nx = 1\nd\ne\nf", "", "repeats the next lines"),
        (" = 1\nd\nf", "x|\n\nx = 1\nd\ne\nf", " = 1\nd\nf", ""),
        # On a blank line the answer brings its own indentation.
        ("    return 1", "def f():\n    |\ng()", "return 1", ""),
        ("        return 1", "def f():\n    |\ng()", "    return 1", ""),
        ("    return 1\n    # end", "def f():\n|\ng()", "    return 1\n    # end", ""),
    ],
)
def test_what_is_shown(content: str, document: str, text: str, reason: str) -> None:
    before, _, after = document.partition("|")
    line, column = before.count("\n"), len(before.rpartition("\n")[2])
    shown = render(content, (before + after).split("\n"), line, column)
    assert (shown.text, shown.reason) == (text, reason)
    assert (shown.start, shown.end) == (column, column)


def test_an_answer_indented_less_than_its_blank_line_replaces_the_blanks() -> None:
    shown = render("  y\n  z", ["x", "        ", "b"], 1, 8)
    assert (shown.text, shown.start, shown.end) == ("  y\n  z", 0, 8)
