from __future__ import annotations

import pytest

from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.diff import Hunk
from lsp_server.inline_edit.edits import line_edit
from lsp_server.inline_edit.selection import Selection

SNAPSHOT = Snapshot.of("def a():\n    return 1\n\n    \ndef b():\n    return 2\n", language_id="python")


@pytest.mark.parametrize("end", [Point(2, 0), Point(3, 0), Point(3, 2), Point(4, 0)])
def test_blank_lines_at_the_end_are_left_out(end: Point) -> None:
    selection = Selection.of(SNAPSHOT, Point(0, 0), end)
    assert (selection.first, selection.stop) == (0, 2)
    assert selection.keeps_outside(["anything"])


def test_blank_lines_within_stay() -> None:
    assert Selection.of(SNAPSHOT, Point(0, 0), Point(5, 0)).stop == 5


def test_code_that_is_deleted_takes_its_line_end_along() -> None:
    selection = Selection.of(SNAPSHOT, Point(0, 0), Point(4, 0))
    edit = line_edit(selection, Hunk(0, 2, ()))
    assert (edit.start, edit.end, edit.text) == (Point(0, 0), Point(2, 0), "")
