"""Answers that write what stands around the selection (tests/golden/edits.toml), however they are cut."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.layout import Layout
from lsp_server.inline_edit.reasons import NoEditError
from lsp_server.inline_edit.rewrite import Rewrite
from lsp_server.inline_edit.selection import Selection

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GOLDEN = Path(__file__).parents[2] / "golden" / "edits.toml"
CASES: list[dict[str, Any]] = tomllib.loads(GOLDEN.read_text(encoding="utf-8"))["case"]


def selection_of(case: dict[str, Any]) -> Selection:
    before, inside, after = case["document"].replace("»", "«").split("«")
    snapshot = Snapshot.of(before + inside + after, "x", language_id=case["language"])
    first = before.count("\n")
    return Selection.of(snapshot, Point(first, 0), Point(first + inside.count("\n"), 0))


def outcome(case: dict[str, Any], pieces: Iterator[str]) -> dict[str, Any]:
    """What a case expects, as it comes out; nothing that was shown is taken back."""
    selection = selection_of(case)
    rewrite = Rewrite(selection, case.get("instruction", "change it"), Layout.of(selection.lines))
    shown = rewrite.progress
    for piece in pieces:
        rewrite.feed(piece)
        progress = rewrite.progress
        assert progress.hunks[: len(shown.hunks)] == shown.hunks
        if shown.open is not None and progress.open is not None and shown.open.start == progress.open.start:
            assert progress.open.lines[: len(shown.open.lines)] == shown.open.lines
        shown = progress
    try:
        rewritten = rewrite.finish()
    except NoEditError as none:
        return {"reason": none.reason}
    assert rewritten.hunks[: len(shown.hunks)] == shown.hunks
    if shown.open is not None:
        (hunk,) = [hunk for hunk in rewritten.hunks if hunk.start == shown.open.start]
        assert hunk.lines[: len(shown.open.lines)] == shown.open.lines
    flags = [flag.value for flag in rewritten.flags]
    return {"becomes": list(rewritten.lines), **({"flags": flags} if flags else {})}


def expected(case: dict[str, Any]) -> dict[str, Any]:
    if "reason" in case:
        return {"reason": case["reason"]}
    lines = case["becomes"].strip("\n").split("\n")
    return {"becomes": lines, **({"flags": case["flags"]} if "flags" in case else {})}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_golden(case: dict[str, Any], eol: str) -> None:
    case = {**case, "document": case["document"].replace("\n", eol)}
    answer = case["answer"].strip("\n").replace("\n", eol)
    whole = outcome(case, iter([answer]))
    assert whole == expected(case)
    assert outcome(case, iter(answer)) == whole
    for at in range(1, len(answer)):
        assert outcome(case, iter([answer[:at], answer[at:]])) == whole
