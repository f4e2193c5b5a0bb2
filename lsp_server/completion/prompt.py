"""The prompt for a place in a document: its window within the budget, in the format of the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from inference.api import TextCodec
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.context.related import KeptLines, Shares, fit_files, fit_lines, reserve_for
from lsp_server.context.window import Budget, Window, choose
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.fim import ContextFile, FimFormat, FimParts, find_format, render

# The suffix is read anew for each line, behind a prefix that has changed, so its length is latency; its use
# falls off fast with the distance from the cursor.
MAX_SUFFIX_TOKENS = 128


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

    def build(
        self,
        snapshot: Snapshot,
        cursor: Point,
        options: CompletionOptions,
        related: Sequence[ContextFile] = (),
        prefix_lines: Sequence[KeptLines] = (),
    ) -> BuiltPrompt:
        """The prompt for a place, with pieces of other places before it, and with lines of the document that
        the window leaves out at the top of the prefix.

        Raises:
            NoSuggestion: ``no-fim``.
        """
        if self._format is None:
            raise NoSuggestion(Reason.NO_FIM)
        answer = max(1, min(options.max_new_tokens, self._context // 2))
        room = min(options.prompt_tokens, self._context - answer)
        total = max(2, room - self._format.overhead)
        shares = Shares.of(options.context_sources, options.context_tokens, total)
        files, spent = fit_files(related, shares.files, self._count)
        budget = Budget.split(total - spent, max_suffix=MAX_SUFFIX_TOKENS)
        kept, window = self._window(snapshot, cursor, budget, prefix_lines, shares.lines)
        prefix, head, healed = kept + window.above, window.head, ""
        if options.heal and head == without_surrogates(head):
            start = self._codec.healing_start(head)
            head, healed = head[:start], head[start:]
        if not options.line_in_middle or not self._divisible:
            prefix, head = prefix + head, ""
        # Trained on files, which end with a newline; with nothing at all behind the cursor the model
        # begins a line of its own and repeats the indentation.
        suffix = window.suffix or "\n"
        parts = FimParts(prefix, suffix, head, budget.prefix, max(budget.suffix, 1), files)
        ids = render(self._format, parts, self._codec)
        return BuiltPrompt(ids, healed, self._format.stop_ids, answer, window)

    def _window(
        self, snapshot: Snapshot, cursor: Point, budget: Budget, lines: Sequence[KeptLines], limit: int
    ) -> tuple[str, Window]:
        """The lines that stay visible above the window, at most ``limit`` tokens of them, and the window,
        which is smaller by what they take."""
        window = choose(snapshot, cursor, budget, self._count)
        room = reserve_for(lines, window.first_line, limit, self._count)
        if not room:
            return "", window
        window = choose(snapshot, cursor, Budget(budget.prefix - room, budget.suffix), self._count)
        return fit_lines(lines, window.first_line, room, self._count), window

    def _count_line(self, line: str) -> int:
        return len(self._codec.encode(without_surrogates(line)))
