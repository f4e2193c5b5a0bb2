"""Golden cases of each filter (tests/golden/filters/<name>.toml) and of the chain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from lsp_server.completion.filter_context import filter_context
from lsp_server.completion.filters import FILTERS, FilterContext, run_filters
from lsp_server.completion.filters.definitions import begins_definition
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.ranges import ItemRange, item_range
from lsp_server.documents.text import Point, Snapshot

CURSORS = "¦‸"
GOLDEN = Path(__file__).parents[2] / "golden" / "filters"


def cases() -> list[Any]:
    found = []
    for file in sorted(GOLDEN.glob("*.toml")):
        for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]:
            found.append(pytest.param(file.stem, case, id=f"{file.stem}: {case['name']}"))
    return found


def context_of(case: dict[str, Any]) -> FilterContext:
    """The context of a case: from a ``document`` with the cursor at the mark, or from fields by name."""
    if "document" not in case:
        keep = {"name", "text", "expect", "dropped"}
        return FilterContext(**{key: value for key, value in case.items() if key not in keep})
    mark = next(mark for mark in CURSORS if mark in case["document"])
    before, _, after = case["document"].partition(mark)
    snapshot = Snapshot.of(before + after, language_id=case.get("language_id", ""))
    cursor = Point(before.count("\n"), len(before.rpartition("\n")[2]))
    return filter_context(snapshot, cursor, CompletionOptions(replaces_rest=case.get("replaces_rest", False)))


@pytest.mark.parametrize(("filter", "case"), cases())
def test_golden(filter: str, case: dict[str, Any]) -> None:
    context = context_of(case)
    expected = None if case.get("dropped") else case["expect"]
    if filter == "chain":
        assert run_filters(case["text"], context)[0] == expected
    else:
        assert FILTERS[filter.replace("_", "-")](case["text"], context) == expected


def test_every_filter_has_golden_cases() -> None:
    assert {file.stem for file in GOLDEN.glob("*.toml")} == {name.replace("-", "_") for name in FILTERS} | {
        "chain"
    }


def test_the_chain_names_the_filter_that_dropped() -> None:
    assert run_filters("  \n", FilterContext()) == (None, "blank")


def test_a_filter_can_be_left_out() -> None:
    assert run_filters("a\nb  \nc", FilterContext())[0] == "a\nb\nc"
    assert run_filters("a\nb  \nc", FilterContext(off=frozenset({"trailing-space"})))[0] == "a\nb  \nc"


PIECES = st.sampled_from(
    [
        "    ",
        "\t",
        "\n",
        "\n\n",
        "def f(a):",
        "if x {",
        "}",
        "})",
        "return x",
        "x = 1",
        ";",
        "(",
        '"',
        "'",
        "```",
        "# a",
    ]
)
TEXT = st.builds("".join, st.lists(PIECES | st.text(max_size=3), max_size=14))


@given(TEXT, TEXT, TEXT, st.sampled_from(["python", "go", "rust", "typescript", "cpp", ""]), st.booleans())
def test_any_text_at_any_place(before: str, text: str, after: str, language: str, replaces: bool) -> None:
    before = before.replace("\r", "")
    snapshot = Snapshot.of(before + after, language_id=language)
    cursor = Point(before.count("\n"), len(before.rpartition("\n")[2]))
    # What that filter closes is new; tests/insertion looks at it.
    options = CompletionOptions(replaces_rest=replaces, filters_off=frozenset({"syntax"}))
    context = filter_context(snapshot, cursor, options)
    kept, dropped_by = run_filters(text, context)
    if kept is None:
        assert dropped_by in FILTERS
    else:
        # Something to read is left, and nothing but white space is new.
        assert kept.strip() and dropped_by == ""
        assert "".join(kept.split()) in "".join(text.split())


def test_a_case_expects_text_or_nothing() -> None:
    for _, case in ((p.values[0], p.values[1]) for p in cases()):
        assert ("expect" in case) != bool(case.get("dropped")), case["name"]
        assert sum(case.get("document", CURSORS[0]).count(mark) for mark in CURSORS) == 1, case["name"]


@pytest.mark.parametrize(
    ("insert", "rest", "replaces", "expected"),
    [
        ("abc", "", True, ItemRange(4, 4)),
        ("abc)", ")", False, ItemRange(4, 4)),
        ("abc)", ")", True, ItemRange(4, 5)),
        ("abc) + 1", "))", True, ItemRange(4, 5)),
        ("abc))", "))", True, ItemRange(4, 6)),
        ("abc)", " )", True, ItemRange(4, 6)),
        ('abc" )', '" );', True, ItemRange(4, 7)),
        ('abc"', '" )', True, ItemRange(4, 5)),
        ("f(abc)", ")", True, ItemRange(4, 4)),
        ("abc)", ") and more", True, ItemRange(4, 4)),
        ('abc"', '"', True, ItemRange(4, 5)),
        ('Doc."""\n    pass', '"""', True, ItemRange(4, 7)),
        ('Say "a".\n    """', '"""', True, ItemRange(4, 7)),
        ('a""" + """b', '"""', True, ItemRange(4, 4)),
    ],
)
def test_ranges(insert: str, rest: str, replaces: bool, expected: ItemRange) -> None:
    assert item_range(4, insert, rest, replaces_rest=replaces) == expected


def test_range_of_a_selected_entry_begins_before_the_cursor() -> None:
    assert item_range(4, "x", "", replaces_rest=False, start=2) == ItemRange(2, 4)


def test_a_closing_tag_stays_where_it_was_opened() -> None:
    text = "return `<s>${old}</s> ${title}`"
    assert FILTERS["control"](text, FilterContext(language_id="javascript")) == text
    assert FILTERS["control"]("a = 1</s>b", FilterContext(language_id="javascript")) == "a = 1"


def test_a_long_line_begins_no_definition() -> None:
    text = "static " * 3000 + "void run() {"
    assert FILTERS["sibling-definition"](f"a();\n{text}", FilterContext(head="    ", language_id="java"))
    assert not begins_definition(text, "java") and begins_definition("static void run() {", "java")
