"""Golden cases of each filter (tests/golden/filters/<name>.toml) and of the chain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from lsp_server.completion.filters import FILTERS, FilterContext, run_filters
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.ranges import ItemRange, item_range
from tests.unit.lsp.cursor import at_mark

GOLDEN = Path(__file__).parents[2] / "golden" / "filters"


def cases() -> list[Any]:
    found = []
    for file in sorted(GOLDEN.glob("*.toml")):
        for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]:
            found.append(pytest.param(file.stem, case, id=f"{file.stem}: {case['name']}"))
    return found


@pytest.mark.parametrize(("filter", "case"), cases())
def test_golden(filter: str, case: dict[str, Any]) -> None:
    keep = {"name", "text", "expect", "dropped", "document"}
    given = {key: value for key, value in case.items() if key not in keep}
    if "document" in case:
        options = CompletionOptions(replaces_rest=given.get("replaces_rest", False))
        context = at_mark(case["document"], given["language_id"], options).filters
    else:
        context = FilterContext(**given)
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


@pytest.mark.parametrize(
    ("insert", "rest", "replaces", "expected"),
    [
        ("abc", "", True, ItemRange(4, 4)),
        ("abc)", ")", False, ItemRange(4, 4)),
        ("abc)", ")", True, ItemRange(4, 5)),
        ("abc) + 1", "))", True, ItemRange(4, 5)),
        ("abc))", "))", True, ItemRange(4, 6)),
        ("abc)", " )", True, ItemRange(4, 6)),
        ("f(abc)", ")", True, ItemRange(4, 4)),
        ("abc)", ") and more", True, ItemRange(4, 4)),
        ('abc"', '"', True, ItemRange(4, 5)),
    ],
)
def test_ranges(insert: str, rest: str, replaces: bool, expected: ItemRange) -> None:
    assert item_range(4, insert, rest, replaces_rest=replaces) == expected


def test_range_of_a_selected_entry_begins_before_the_cursor() -> None:
    assert item_range(4, "x", "", replaces_rest=False, start=2) == ItemRange(2, 4)
