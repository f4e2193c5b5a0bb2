"""The steps between a position and a suggestion that need no event loop.

The server and ``draftline complete`` run the same functions: ``prepare`` turns a snapshot into a
request for the engine, ``finish`` turns the engine's text into a suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from inference.api import Draft, FinishReason, GenerationRequest, GenerationResult, StopRules, TextCodec
from lsp_server.completion.filters import FilterContext, run_filters
from lsp_server.completion.filters.suffix_overlap import CLOSING
from lsp_server.completion.ranges import ItemRange, item_range
from lsp_server.completion.reasons import Reason, filtered
from lsp_server.completion.scope import scope_indent
from lsp_server.context.window import Budget, Window, choose
from lsp_server.documents.line_index import strip_eol, to_lf
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.fim import FimFormat, FimParts, find_format, render

# The suffix is read anew for each line, behind a prefix that has changed, so its length is latency; its use
# falls off fast with the distance from the cursor.
MAX_SUFFIX_TOKENS = 128
# Characters after the cursor that the engine compares its text with.
STOP_SUFFIX_CHARS = 1024
# Neighbouring lines further away than this are no neighbours.
_NEIGHBOUR_LINES = 8


# The model had more to say: the last line is broken off.
_CUT_SHORT = frozenset({FinishReason.LENGTH, FinishReason.CONTEXT, FinishReason.DEADLINE})
# The same few characters, letters among them, four times or more up to the end.
_LOOP_AT_END = re.compile(r"((?=[^\n]*?\w)[^\n]{4,60}?)\1{3,}[^\n]{0,60}\Z")


class NoSuggestion(Exception):
    """The answer is ``[]``; ``reason`` is a code of completion/reasons.py or of the engine."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message


@dataclass(frozen=True)
class CompletionOptions:
    """How to generate. The names are those of the settings; ``max_lines`` 0 means no limit.

    ``prompt_tokens`` bounds the prompt below what the context would hold: a new window is read at the speed
    of prefill, and that is what a user waits for.

    ``heal`` lets the model choose anew how the last piece before the cursor is divided into tokens.

    ``line_in_middle`` puts the cursor's line behind the middle marker (see prompts/fim.py): while the user
    types on one line, nothing before that line is read again. Without healing it costs quality.
    """

    max_new_tokens: int = 128
    prompt_tokens: int = 1024
    max_lines: int = 10
    temperature: float = 0.0
    seed: int = 0
    draft: Draft | None = None
    use_cache: bool = True
    digest_logits: bool = False
    replaces_rest: bool = False
    heal: bool = True
    line_in_middle: bool = True


@dataclass(frozen=True)
class Selected:
    """The popup entry that the suggestion must extend: its text and where it begins (characters)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Prepared:
    """A request for the engine with what is needed to judge its answer."""

    request: GenerationRequest
    filters: FilterContext
    cursor: Point
    selected: Selected | None
    window: Window


@dataclass(frozen=True)
class Suggestion:
    """Text to show and the columns (in characters) it replaces on the cursor's line.

    ``text`` uses ``\\n``; with a selected popup entry it begins with that entry's text.
    """

    text: str
    range: ItemRange


@dataclass(frozen=True)
class BuiltPrompt:
    """Attributes:
    heal: the end of the text before the cursor that is not in ``ids``.
    answer: tokens that the answer may take.
    """

    ids: tuple[int, ...]
    heal: str
    stop_ids: frozenset[int]
    answer: int
    window: Window


class PromptBuilder:
    """Prompts for one vocabulary; remembers the token counts of lines, which rarely change."""

    def __init__(self, codec: TextCodec, context: int) -> None:
        self._codec = codec
        self._context = context
        self._format = find_format(codec)
        # Some vocabularies put a blank in front of every text, which would indent the cursor's line.
        self._divisible = codec.encode("x = 1") == codec.encode("x") + codec.encode(" = 1")
        self._count: Callable[[str], int] = lru_cache(maxsize=16384)(self._count_line)

    @property
    def format(self) -> FimFormat | None:
        """The fill-in-the-middle format, None if the vocabulary has none."""
        return self._format

    def build(self, snapshot: Snapshot, cursor: Point, options: CompletionOptions) -> BuiltPrompt:
        """The prompt for a place.

        Raises:
            NoSuggestion: ``no-fim``.
        """
        if self._format is None:
            raise NoSuggestion(Reason.NO_FIM)
        answer = max(1, min(options.max_new_tokens, self._context // 2))
        room = min(options.prompt_tokens, self._context - answer)
        total = max(2, room - self._format.overhead)
        budget = Budget.split(total, max_suffix=MAX_SUFFIX_TOKENS)
        window = choose(snapshot, cursor, budget, self._count)
        prefix, head, healed = window.above, window.head, ""
        if options.heal and head == without_surrogates(head):
            start = self._codec.healing_start(head)
            head, healed = head[:start], head[start:]
        if not options.line_in_middle or not self._divisible:
            prefix, head = prefix + head, ""
        # Trained on files, which end with a newline; with nothing at all behind the cursor the model
        # begins a line of its own and repeats the indentation.
        suffix = window.suffix or "\n"
        parts = FimParts(prefix, suffix, head, budget.prefix, max(budget.suffix, 1))
        ids = render(self._format, parts, self._codec)
        return BuiltPrompt(ids, healed, self._format.stop_ids, answer, window)

    def _count_line(self, line: str) -> int:
        return len(self._codec.encode(without_surrogates(line)))


def prepare(
    snapshot: Snapshot,
    cursor: Point,
    builder: PromptBuilder,
    options: CompletionOptions,
    selected: Selected | None = None,
) -> Prepared:
    """The request for a suggestion at ``cursor`` (column in characters).

    Raises:
        NoSuggestion: ``no-fim``, or ``empty`` for a document without text.
    """
    if selected is not None:
        snapshot, cursor = _with_selected(snapshot, cursor.line, selected)
    if not any(line.strip() for line in snapshot.lines):
        raise NoSuggestion(Reason.EMPTY, "There is nothing to go by in an empty document.")
    built = builder.build(snapshot, cursor, options)
    line = snapshot.line(cursor.line)
    rest = line[cursor.column :]
    stops = StopRules(
        token_ids=built.stop_ids,
        suffix=without_surrogates(_text_after(snapshot, cursor, STOP_SUFFIX_CHARS)),
        single_line=CLOSING.fullmatch(rest) is None,
        max_lines=options.max_lines or None,
        min_indent=scope_indent(line[: cursor.column]),
        first_line_scope=not line[: cursor.column].strip(),
    )
    request = GenerationRequest(
        prompt=built.ids,
        document=snapshot.uri,
        heal=built.heal,
        max_new_tokens=built.answer,
        stops=stops,
        temperature=options.temperature,
        seed=options.seed,
        draft=options.draft,
        use_cache=options.use_cache,
        digest_logits=options.digest_logits,
    )
    filters = FilterContext(
        head=line[: cursor.column],
        rest=rest,
        line_above=_neighbour(snapshot, cursor.line, -1),
        line_below=_neighbour(snapshot, cursor.line, 1),
        language_id=snapshot.language_id,
        replaces_rest=options.replaces_rest,
    )
    return Prepared(request, filters, cursor, selected, built.window)


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
    # The token limit can cut a character of several tokens in half.
    text = text.rstrip("\ufffd")
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
    if _LOOP_AT_END.search(text):
        return text.rpartition("\n")[0].rstrip()
    whole, newline, _ = text.rpartition("\n")
    return whole.rstrip() if newline else text


def place(cursor: Point, filters: FilterContext, text: str, selected: Selected | None = None) -> Suggestion:
    """The suggestion that shows ``text`` at ``cursor``."""
    if selected is not None:
        return Suggestion(selected.text + text, ItemRange(selected.start, selected.end))
    range = item_range(cursor.column, text, filters.rest, replaces_rest=filters.replaces_rest)
    return Suggestion(text, range)


def _with_selected(snapshot: Snapshot, number: int, selected: Selected) -> tuple[Snapshot, Point]:
    """The document as it would be with the popup entry accepted, and the cursor behind that entry."""
    line = snapshot.lines[number]
    changed = line[: selected.start] + selected.text + line[selected.end :]
    lines = (*snapshot.lines[:number], changed, *snapshot.lines[number + 1 :])
    column = selected.start + len(selected.text)
    accepted = Snapshot(snapshot.uri, snapshot.version, snapshot.language_id, lines, snapshot.eol)
    return accepted, Point(number, column)


def _text_after(snapshot: Snapshot, cursor: Point, limit: int) -> str:
    text = to_lf(snapshot.lines[cursor.line])[cursor.column : cursor.column + limit]
    number = cursor.line + 1
    while len(text) < limit and number < len(snapshot.lines):
        text += to_lf(snapshot.lines[number][: limit + 2])
        number += 1
    return text[:limit]


def _neighbour(snapshot: Snapshot, number: int, step: int) -> str:
    for _ in range(_NEIGHBOUR_LINES):
        number += step
        if not 0 <= number < len(snapshot.lines):
            break
        line = strip_eol(snapshot.lines[number])
        if line.strip():
            return line
    return ""
