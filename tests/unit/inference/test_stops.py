"""Where generations end. Each case is a suffix, what the model writes, and what is kept."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inference.api import Below, FinishReason, StopRules
from inference.stops import StopChecker

R = FinishReason


def _run(rules: StopRules, output: str) -> tuple[str, FinishReason | None]:
    checker = StopChecker(rules)
    for character in output:
        if (reason := checker.push(character)) is not None:
            return checker.text, reason
    checker.finish()
    return checker.text, None


SUFFIX_CASES = [
    # Python: the line after the cursor comes again.
    ("\n    return lo\n", "x = 1\n    return lo\n", "x = 1", R.SUFFIX),
    ("\n\n\n    return total\n", "x = 1\n\n    return total\n\n", "x = 1", R.SUFFIX),
    ("\n    return lo\n", "x = 1\n        return lo\n    y", "x = 1\n        return lo\n    y", None),
    # ... and only its beginning is equal.
    ("\n    return lo\n", "x = 1\n    return lo + 1\n    y", "x = 1\n    return lo + 1\n    y", None),
    # A line that says little must be followed by the next one.
    ("\n    else:\n        b()\n", "a()\n    else:\n        b()\n", "a()", R.SUFFIX),
    (
        "\n    else:\n        b()\n",
        "a()\n    else:\n        c()\n    d",
        "a()\n    else:\n        c()\n    d",
        None,
    ),
    ("\n    pass", "a()\n    pass\n", "a()", R.SUFFIX),
    # C: a bracket that closes what stands before the cursor.
    ("\n}\n\nint main() {\n", "return 1;\n}\n", "return 1;", R.SUFFIX),
    ("\n}\n", "if (x) {\n    y();\n}\nz();\n", "if (x) {\n    y();\n}\nz();\n", None),
    ("\n    });\n", "f(x);\n    });\n", "f(x);", R.SUFFIX),
    # The rest of the cursor's line.
    (")\n", "a, b)\n", "a, b", R.SUFFIX),
    (")\n", "f(a), g(b))\n", "f(a), g(b)", R.SUFFIX),
    (")\n", "')')", "')'", R.SUFFIX),
    ("]", "x[0]]", "x[0]", R.SUFFIX),
    (" + b)\n", "a)", "a)", None),
    # ... word by word, where it says something.
    (" + offset\n", "base + offset\n", "base ", R.SUFFIX),
    (" + offset\n", "base + offset", "base ", None),
    (" + offset\n", "base + offsets\n", "base + offsets\n", None),
    ("length)\n", "full_length, length)\n", "full_length, ", R.SUFFIX),
    ("offset\n", "my_offset = 1\n", "my_offset = 1\n", None),
    ("xy\n", "x + xy\n", "x + xy\n", None),
    # The next line comes behind the cursor at once.
    ("\n    # use single quotes\n    return x\n", "# use single quotes\n    return x\n", "", R.SUFFIX),
    ("\n    x\n", "x\n    y\n", "x\n    y\n", None),
    # Nothing after the cursor.
    ("", "a\nb\n", "a\nb\n", None),
    ("\n", "a\nb\n", "a\nb\n", None),
]


@pytest.mark.parametrize(("suffix", "output", "text", "reason"), SUFFIX_CASES)
def test_suffix(suffix: str, output: str, text: str, reason: FinishReason | None) -> None:
    assert _run(StopRules(suffix=suffix), output) == (text, reason)


def test_an_unfinished_last_line_that_repeats_the_suffix_is_cut() -> None:
    assert _run(StopRules(suffix="\n    return lo\n"), "x = 1\n    return lo") == ("x = 1", None)


def test_strings_and_lines() -> None:
    assert _run(StopRules(strings=("END",)), "a EN b END c") == ("a EN b ", R.STOP_STRING)
    assert _run(StopRules(single_line=True), "a\nb") == ("a", R.LINES)
    assert _run(StopRules(finish_line=True), "a\nb\nc") == ("a", R.LINES)
    assert _run(StopRules(finish_line=True), " \nb\nc") == (" \nb\nc", None)
    assert _run(StopRules(max_lines=2), "a\nb\nc") == ("a\nb", R.LINES)
    assert _run(StopRules(max_lines=3), "a\nb") == ("a\nb", None)


TEXT = st.text(alphabet="ab})(]\n `'\"", max_size=40)
# A suffix may begin with a rest of the line that says something, and then the text may well repeat it.
SUFFIX = st.builds(str.__add__, st.sampled_from(["", "", "ababab", " ababab)"]), TEXT)
OUTPUT = st.builds("".join, st.lists(st.sampled_from(["ababab", "ababab)", " ", "'''"]) | TEXT, max_size=6))


@given(
    SUFFIX,
    OUTPUT,
    st.integers(1, 5),
    st.sampled_from([(), ("ab",), ("a\n", "}}")]),
    st.sampled_from([None, 1, 2]),
)
def test_settled_text_is_never_taken_back(
    suffix: str, output: str, step: int, strings: tuple[str, ...], indent: int | None
) -> None:
    rules = StopRules(
        suffix=suffix,
        strings=strings,
        max_lines=4,
        min_indent=indent,
        first_line_scope=indent is None,
        text_marks=("`", "'''"),
    )
    checker = StopChecker(rules)
    settled = ""
    reason = None
    for start in range(0, len(output), step):
        reason = checker.push(output[start : start + step])
        assert checker.text.startswith(settled)
        if reason is not None:
            break
        assert checker.settled >= len(settled)
        settled = checker.text[: checker.settled]
    if reason is None:
        checker.finish()
    assert checker.text.startswith(settled)
    assert output.startswith(checker.text)


WORDS = st.lists(
    st.sampled_from(
        ["\n", "\n", "    ", "    ", "return x", "a_long_line", "if x:", "else:", "b", "{", ")", "# c"]
    ),
    max_size=24,
).map("".join)


@example("", "return x", "return x\n# c\nreturn x", 1)
@given(st.sampled_from(["", "    ", "    x"]), WORDS, WORDS, st.integers(1, 5))
def test_settled_text_is_never_taken_back_by_what_stands_below(
    head: str, below: str, output: str, step: int
) -> None:
    lines = tuple(line for line in below.split("\n") if line.strip())
    checker = StopChecker(StopRules(below=Below(head, lines), max_lines=9))
    settled, reason = "", None
    for start in range(0, len(output), step):
        reason = checker.push(output[start : start + step])
        assert checker.text.startswith(settled)
        if reason is not None:
            break
        settled = checker.text[: checker.settled]
    if reason is None:
        checker.finish()
    assert checker.text.startswith(settled)
    assert output.startswith(checker.text)


def test_a_comment_is_settled_unless_the_statement_below_it_may_go() -> None:
    checker = StopChecker(StopRules(below=Below("    ", ("    done()",))))
    checker.push("# Why.\n    a = 1\n")
    assert checker.text[: checker.settled] == "# Why.\n    a = 1"
    first = StopChecker(StopRules(below=Below("    ", ("    done()",))))
    first.push("# Why.\n    ")
    assert first.text[: first.settled] == "# Why."
    checker.push("    # Then.\n    ")
    assert checker.text[: checker.settled] == "# Why.\n    a = 1"


@given(SUFFIX, OUTPUT, st.integers(1, 7))
def test_pieces_do_not_matter(suffix: str, output: str, step: int) -> None:
    rules = StopRules(suffix=suffix, strings=("ab",), first_line_scope=True, text_marks=("`", "'''"))
    checker = StopChecker(rules)
    reason = None
    for start in range(0, len(output), step):
        reason = checker.push(output[start : start + step])
        if reason is not None:
            break
    if reason is None:
        checker.finish()
    assert (checker.text, reason) == _run(rules, output)


SCOPE_CASES = [
    ("x = 1\n        y = 2\n\n    def other(self):\n", 8, "x = 1\n        y = 2", R.SCOPE),
    ("x = 1\n        if y:\n            z()\n        return x\n", 8, None, None),
    ("return 1;\n}\n\nint g() {\n", 4, "return 1;\n}", R.SCOPE),
    ("a\n\tb\nc", 4, "a\n\tb", R.SCOPE),
    ("a\n\n\nb", 4, "a", R.SCOPE),
    ("a\n  \n    b\n", 4, None, None),
    ("a\nb\n", None, None, None),
]


@pytest.mark.parametrize(
    ("output", "text", "reason"),
    [
        ("    return x\n\n# checks\nprint(f(1))", "    return x", R.SCOPE),
        ("\n    a = 1\n    b = 2\nc", "\n    a = 1\n    b = 2", R.SCOPE),
        ("a = 1\nb = 2\n", None, None),
        ("    if x:\n        y()\n    z()\n", None, None),
    ],
)
def test_the_first_line_sets_the_scope(output: str, text: str | None, reason: FinishReason | None) -> None:
    assert _run(StopRules(first_line_scope=True), output) == (output if text is None else text, reason)


@pytest.mark.parametrize(("output", "indent", "text", "reason"), SCOPE_CASES)
def test_scope(output: str, indent: int | None, text: str | None, reason: FinishReason | None) -> None:
    assert _run(StopRules(min_indent=indent), output) == (output if text is None else text, reason)


_QUERY = 'q = """\nselect 1\n  from t\n""" + f("""a\n""")\n    x = 1\ny = 2'


@pytest.mark.parametrize(
    ("marks", "within", "output", "text", "reason"),
    [
        (('"""',), "", _QUERY, _QUERY[: -len("\ny = 2")], R.SCOPE),
        ((), "", _QUERY, 'q = """', R.SCOPE),
        (('"""',), '"""', 'a\nb\n"""\n    x = 1\ny', 'a\nb\n"""\n    x = 1', R.SCOPE),
        (('"""',), "", 'x = \'"""\'\ny', 'x = \'"""\'', R.SCOPE),
        (('"""',), "", 'x = """a\\"""\nb"""\n    c\nd', 'x = """a\\"""\nb"""\n    c', R.SCOPE),
        (('"""',), "", 'x = """"""\ny', 'x = """"""', R.SCOPE),
        (("`",), "", "x = `\n<b>\n`;\n    z();\n}\ny();", "x = `\n<b>\n`;\n    z();\n}", R.SCOPE),
        (("`",), "", 'x = "`";\ny();', 'x = "`";', R.SCOPE),
    ],
)
def test_indentation_in_a_string_of_several_lines_says_nothing(
    marks: tuple[str, ...], within: str, output: str, text: str, reason: FinishReason
) -> None:
    assert _run(StopRules(min_indent=4, text_marks=marks, open_text=within), output) == (text, reason)


def test_a_bracket_in_a_string_of_several_lines_closes_nothing() -> None:
    rules = StopRules(suffix=")\n", text_marks=('"""',))
    output = '"""\n:)\n""")'
    assert _run(rules, output) == (output[:-1], R.SUFFIX)
