"""Problems that a prompt shows."""

from __future__ import annotations

from typing import Any

import pytest
from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.context import context_of
from lsp_server.inline_edit.selection import Selection
from lsp_server.inline_edit.wire import request_of

SELECTION = Selection.of(Snapshot.of("a\nb\nc\nd\ne\n"), Point(1, 0), Point(3, 1))


def asked(*ranges: Any) -> Any:
    range = {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 1}}
    diagnostics = [{"range": range, "message": "m"} for range in ranges]
    return {"textDocument": {"uri": "u"}, "range": range, "instruction": "i", "diagnostics": diagnostics}


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        ((2, 0), (2, 1), ("line 2: m",)),
        ((0, 0), (2, 1), ("line 1: m",)),  # begins above the selection, and is about it
        ((0, 0), (9, 0), ("line 1: m",)),
        ((3, 0), (9, 0), ("line 3: m",)),
        ((0, 0), (1, 0), ()),  # ends where the selection begins
        ((0, 0), (0, 1), ()),
        ((4, 0), (4, 1), ()),
        ((99, 7), (99, 8), ()),
    ],
)
def test_those_that_touch_the_selection(
    start: tuple[int, int], end: tuple[int, int], shown: tuple[str, ...]
) -> None:
    range = {key: {"line": at[0], "character": at[1]} for key, at in (("start", start), ("end", end))}
    assert context_of(SELECTION, request_of(asked(range)).diagnostics).problems == shown


def test_a_position_that_is_no_number_is_the_client_s_fault() -> None:
    with pytest.raises(JsonRpcInvalidParams):
        request_of(asked({"start": {"line": "2", "character": 0}}))


def test_what_a_selection_stands_in_whose_first_line_is_blank() -> None:
    selection = Selection.of(Snapshot.of("def f():\n    a\n\n    b\n"), Point(2, 0), Point(4, 0))
    assert context_of(selection).heads == ("def f():",)
