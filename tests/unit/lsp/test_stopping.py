"""The stop rules that a document gives the engine, and their names."""

from __future__ import annotations

from inference.api import FinishReason, StopRules
from inference.stops import StopChecker
from lsp_server.completion.filter_context import filter_context
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.shape import shape
from lsp_server.completion.stopping import STOP_SUFFIX_CHARS, stop_rules
from lsp_server.documents.text import Point, Snapshot


def rules_at(snapshot: Snapshot, cursor: Point, options: CompletionOptions) -> StopRules:
    place = filter_context(snapshot, cursor, options)
    return stop_rules(snapshot, cursor, frozenset({7}), options, place, shape(place))


SNAPSHOT = Snapshot.of("def f(x):\r\n    y = \r\n    return y\r\n")


def test_rules_of_a_document() -> None:
    rules = rules_at(SNAPSHOT, Point(1, 8), CompletionOptions(max_lines=4))
    assert rules.suffix == "\n    return y\n"
    assert rules.max_lines == 4 and rules.token_ids == {7}


def test_rules_can_be_left_out() -> None:
    options = CompletionOptions(max_lines=4, filters_off=frozenset({"suffix"}))
    rules = rules_at(SNAPSHOT, Point(1, 8), options)
    assert rules.suffix == "" and rules.max_lines == 4
    options = CompletionOptions(max_lines=4, filters_off=frozenset({"max-lines"}))
    rules = rules_at(SNAPSHOT, Point(1, 8), options)
    assert rules.suffix and rules.max_lines is None


def test_the_suffix_is_bounded() -> None:
    long = Snapshot.of("x\n" + "y" * 10_000)
    assert len(rules_at(long, Point(0, 1), CompletionOptions()).suffix) == STOP_SUFFIX_CHARS


def test_the_string_that_the_cursor_stands_in() -> None:
    text = 'def f():\n    """Say \\""" or\n\n    """\n    q = """\n'
    snapshot = Snapshot.of(text, language_id="python")
    found = [rules_at(snapshot, Point(line, 0), CompletionOptions()).open_text for line in range(6)]
    assert found == ["", "", '"""', '"""', "", '"""']
    assert rules_at(snapshot, Point(1, 9), CompletionOptions()).open_text == '"""'
    assert rules_at(snapshot, Point(0, 0), CompletionOptions()).text_marks == ('"""', "'''")
    script = Snapshot.of("a = `\n", language_id="typescriptreact")
    assert rules_at(script, Point(1, 0), CompletionOptions()).open_text == "`"
    off = CompletionOptions(filters_off=frozenset({"scope"}))
    assert rules_at(snapshot, Point(2, 0), off).open_text == ""
    assert rules_at(Snapshot.of(text, language_id="c"), Point(2, 0), CompletionOptions()).open_text == ""


def test_quotes_that_close_the_string_behind_the_cursor_end_the_text() -> None:
    snapshot = Snapshot.of('def f():\n    """"""\n    return 1\n', language_id="python")
    rules = rules_at(snapshot, Point(1, 7), CompletionOptions())
    checker = StopChecker(rules)
    assert checker.push('Say "a".\n\n    More.\n    """\n    return 1') is FinishReason.STOP_STRING
    assert checker.text == 'Say "a".\n\n    More.\n    '
    assert rules_at(snapshot, Point(1, 4), CompletionOptions()).strings == (), "they open one"
    off = CompletionOptions(filters_off=frozenset({"suffix"}))
    assert rules_at(snapshot, Point(1, 7), off).strings == ()


def test_the_string_is_found_in_a_long_document_wherever_strings_stand_in_it() -> None:
    # As long as this, one of a few cursors in a row would have the middle of a docstring as its first line.
    block = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    snapshot = Snapshot.of(block * 600, language_id="python")
    within = {2, 3, 4}
    for line in range(3000, 3012):
        expected = '"""' if line % 6 in within else ""
        assert rules_at(snapshot, Point(line, 0), CompletionOptions()).open_text == expected, line


def test_marks_that_are_only_quoted_open_nothing() -> None:
    text = (
        "MARKS = ('\"\"\"', \"'''\", '\\'`')\nx = [\n    \"\"\"It's Ann's.\"\"\",\n    'it\\'s',\n"
        '    """\n    It\'s\n'
    )
    snapshot = Snapshot.of(text, language_id="python")
    found = [rules_at(snapshot, Point(line, 0), CompletionOptions()).open_text for line in range(6)]
    assert found == ["", "", "", "", "", '"""']
    script = Snapshot.of("a = '`'\nb = \"it's `\"\nc = `it's\n", language_id="typescript")
    found = [rules_at(script, Point(line, 0), CompletionOptions()).open_text for line in range(4)]
    assert found == ["", "", "", "`"]
