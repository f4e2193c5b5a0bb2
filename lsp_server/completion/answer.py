"""The outcome of a completion request."""

from __future__ import annotations

from dataclasses import dataclass

from inference.api import GenerationResult
from lsp_server.completion.filters import FilterContext
from lsp_server.completion.pipeline import Suggestion, place
from lsp_server.completion.ranges import ItemRange
from lsp_server.completion.running import Place, Running
from lsp_server.completion.suggestions import Shown
from lsp_server.completion.typed import typed_since


@dataclass(frozen=True)
class Answer:
    """The outcome of a request.

    Attributes:
        suggestion: None if there is none, and then ``reason`` says why.
        superseded: answer ``null`` and not ``[]``: another answer is, or will be, the right one.
        made_by: who made the suggestion: "model", "stream" (the answer to an earlier request, along which
            the user has typed), "cache" or "prefetch" (a suggestion made before; nobody was waited for).
        result: what the engine did for it, None if it was not asked or its answer did not matter any more.
        row: the cursor's line number, within the document.
        line: that line without its line end.
        others: more suggestions for a choice.
    """

    suggestion: Suggestion | None
    reason: str = ""
    message: str = ""
    superseded: bool = False
    made_by: str = "model"
    result: GenerationResult | None = None
    row: int = 0
    line: str = ""
    others: tuple[Suggestion, ...] = ()

    @property
    def cached(self) -> bool:
        """No model was waited for."""
        return self.suggestion is not None and self.made_by in ("cache", "prefetch")

    @property
    def source(self) -> str:
        """Who made the answer, "none" if nobody was asked."""
        if self.suggestion is not None:
            return self.made_by
        return "none" if self.result is None else "model"


def made(wanted: Place, suggestion: Suggestion, running: Running | None, made_by: str = "model") -> Answer:
    """An answer at ``wanted``, with what the engine did for it."""
    result = None if running is None else running.result
    row = wanted.cursor.line
    return Answer(suggestion, made_by=made_by, result=result, row=row, line=wanted.snapshot.line(row))


def placed(wanted: Place, text: str, entry: Shown | None = None) -> Suggestion:
    """The suggestion that shows ``text``, which the filters have seen, at ``wanted``.

    What an ``entry`` replaces behind the cursor stays the same while the user types along it: from what is
    left of its text one cannot tell a bracket that closes what was typed from one that closes more.
    """
    rest = wanted.snapshot.line(wanted.cursor.line)[wanted.cursor.column :]
    if entry is not None and wanted.options.replaces_rest:
        typed = typed_since(entry.snapshot, entry.cursor, wanted.snapshot, wanted.cursor)
        closed = "" if typed is None or "\n" in typed.closed else typed.closed
        covered = entry.replaces()[0]
        if not closed:
            return Suggestion(text, ItemRange(wanted.cursor.column, wanted.cursor.column + covered))
        rest = rest[: len(closed) + covered]
    filters = FilterContext(rest=rest, replaces_rest=wanted.options.replaces_rest)
    return place(wanted.cursor, filters, text)
