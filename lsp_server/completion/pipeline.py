"""The steps between a position and a suggestion that need no event loop.

The server and ``draftline complete`` run the same functions: ``prepare`` turns a snapshot into a
request for the engine, ``finish`` turns the engine's text into a suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from inference.api import FinishReason, GenerationRequest, GenerationResult
from lsp_server.completion.filter_context import filter_context
from lsp_server.completion.filters import FilterContext, run_filters
from lsp_server.completion.options import CompletionOptions, Selected
from lsp_server.completion.popup import with_entry
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.ranges import ItemRange, item_range
from lsp_server.completion.reasons import NoSuggestion, Reason, filtered
from lsp_server.completion.shape import Shape, by_text_behind, shape
from lsp_server.completion.stopping import stop_rules
from lsp_server.context.related import KeptLines
from lsp_server.context.window import Window
from lsp_server.documents.bounds import clipped
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.fim import ContextFile

# The model had more to say: the last line is broken off.
_CUT_SHORT = frozenset({FinishReason.LENGTH, FinishReason.CONTEXT, FinishReason.DEADLINE})
# The same few characters, letters among them, four times or more up to the end.
_LOOP_AT_END = re.compile(r"((?=[^\n]*?\w)[^\n]{4,60}?)\1{3,}[^\n]{0,60}\Z")
# What four copies and the rest take; further up the search would take the square of a line's length.
_LOOP_CHARS = 5 * 60


@dataclass(frozen=True)
class Prepared:
    """A request for the engine with what is needed to judge its answer.

    ``context`` is a version of what its prompt was made from beside the document.
    """

    request: GenerationRequest
    filters: FilterContext
    cursor: Point
    selected: Selected | None
    window: Window
    shape: Shape
    context: Hashable = None


@dataclass(frozen=True)
class Suggestion:
    """Text to show and the columns (in characters) it replaces on the cursor's line.

    ``text`` uses ``\\n``; with a selected popup entry it begins with that entry's text.
    """

    text: str
    range: ItemRange


def prepare(
    snapshot: Snapshot,
    cursor: Point,
    builder: PromptBuilder,
    options: CompletionOptions,
    selected: Selected | None = None,
    related: Sequence[ContextFile] = (),
    prefix_lines: Sequence[KeptLines] = (),
) -> Prepared:
    """The request for a suggestion at ``cursor`` (column in characters).

    Args:
        related: pieces of other places that the prompt shows before the document, least related first.
        prefix_lines: lines of the document to show where its window begins below them.

    Raises:
        NoSuggestion: ``no-fim``, ``secret``, or ``empty`` for a document without text.
    """
    if snapshot.in_secret(cursor):
        raise NoSuggestion(Reason.SECRET)
    if selected is not None:
        snapshot, cursor = with_entry(snapshot, cursor.line, selected)
    column = cursor.column
    snapshot, cursor = clipped(snapshot, cursor)
    # A byte order mark is no text either.
    if not any(line.strip().strip("\ufeff") for line in snapshot.lines):
        raise NoSuggestion(Reason.EMPTY, "There is nothing to go by in an empty document.")
    built = builder.build(snapshot, cursor, options, related, prefix_lines)
    filters = filter_context(snapshot, cursor, options)
    if selected is not None:
        # The range is the popup entry's, which covers no bracket.
        filters = replace(filters, replaces_rest=False)
    wanted = by_text_behind(filters.rest) if "shape" in options.filters_off else shape(filters)
    request = GenerationRequest(
        prompt=built.ids,
        document=snapshot.uri,
        heal=built.heal,
        max_new_tokens=built.answer,
        stops=stop_rules(snapshot, cursor, built.stop_ids, options, filters, wanted),
        temperature=options.temperature,
        seed=options.seed,
        draft=options.draft,
        use_cache=options.use_cache,
        digest_logits=options.digest_logits,
    )
    return Prepared(request, filters, Point(cursor.line, column), selected, built.window, wanted)


def finish(prepared: Prepared, result: GenerationResult) -> Suggestion:
    """The suggestion in the engine's answer.

    Raises:
        NoSuggestion: ``empty``, ``filtered:<name>``, ``cancelled``, ``superseded``.
    """
    if result.finish_reason is FinishReason.CANCELLED:
        raise NoSuggestion(Reason.CANCELLED)
    if result.finish_reason is FinishReason.SUPERSEDED:
        raise NoSuggestion(Reason.SUPERSEDED)
    # A model may write line ends of its own; clients are not asked to understand \r.
    text = result.text.replace("\r\n", "\n").replace("\r", "\n")
    # The token limit can cut a character of several tokens in half, and a model can write half of one
    # anywhere. No file can hold half a surrogate pair.
    text = without_surrogates(text).partition("\ufffd")[0]
    if result.finish_reason in _CUT_SHORT:
        text = without_broken_end(text)
    if not text:
        raise NoSuggestion(Reason.EMPTY)
    kept, dropped_by = run_filters(text, prepared.filters)
    if kept is None:
        raise NoSuggestion(filtered(dropped_by))
    return place(prepared.cursor, prepared.filters, kept, prepared.selected)


def without_broken_end(text: str) -> str:
    """An answer that ran into a limit, without the line it was writing.

    A single line is all there is and stays, unless it runs in circles.
    """
    if _LOOP_AT_END.search(text[-_LOOP_CHARS:]):
        return text.rpartition("\n")[0].rstrip()
    whole, newline, _ = text.rpartition("\n")
    return whole.rstrip() if newline else text


def place(cursor: Point, filters: FilterContext, text: str, selected: Selected | None = None) -> Suggestion:
    """The suggestion that shows ``text`` at ``cursor``."""
    if selected is not None:
        return Suggestion(selected.text + text, ItemRange(selected.start, selected.end))
    range = item_range(cursor.column, text, filters.rest, replaces_rest=filters.replaces_rest)
    return Suggestion(text, range)
