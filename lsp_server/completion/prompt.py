"""The prompt for a place in a document: its window within the budget, in the format of the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from inference.api import TextCodec
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.context.anchor import Anchors
from lsp_server.context.related import KeptLines, Shares, fit_files, fit_lines, reserve_for
from lsp_server.context.window import Budget, Window, choose
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.context_files import ContextFile, LeadWriter
from lsp_server.prompts.fim import FimFormat, FimParts, find_format, render
from lsp_server.prompts.fit import fit_begin, fit_end

# An edit behind the cursor, and in other orders than "spm" each new line, makes the suffix be read anew, so
# its length is latency; its use falls off fast with the distance from the cursor.
MAX_SUFFIX_TOKENS = 128
# Of the document's tokens; a longer header of a family is left out.
_HEADER_SHARE = 8


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
    """Prompts for one vocabulary; remembers the token counts of lines, which rarely change, and anchors."""

    def __init__(self, codec: TextCodec, context: int) -> None:
        self._codec = codec
        self._context = context
        self._format = find_format(codec)
        self._leads = None if self._format is None else LeadWriter(self._format.family, codec)
        self._anchors = Anchors()
        # Some vocabularies put a blank in front of every text, which would indent the cursor's line.
        self._divisible = codec.encode("x = 1") == codec.encode("x") + codec.encode(" = 1")
        self._count: Callable[[str], int] = lru_cache(maxsize=16384)(self._count_text)
        # Prefix and suffix mostly stay from key to key.
        self._count_part: Callable[[str], int] = lru_cache(maxsize=16)(self._count_text)

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
        path: str = "",
    ) -> BuiltPrompt:
        """The prompt for a place, with pieces of other places before it, and with lines of the document that
        the window leaves out at the top of the prefix.

        Its tokens are at most ``options.prompt_tokens``, and with the answer's at most the engine's context.
        With the order "lines-in-middle" it also depends on the prompts that this object built before for the
        document (context/anchor.py).

        Args:
            related: pieces of other places, least related first; those that do not fit into
                ``options.context_tokens`` are left out. They stand before the document, so the same ones in
                the same order are read once.
            prefix_lines: lines of the document to show where its window begins below them.
            path: the document's own as a reader would write it; by default the end of its URI.

        Raises:
            NoSuggestion: ``no-fim``.
        """
        if self._format is None or self._leads is None:
            raise NoSuggestion(Reason.NO_FIM)
        answer = max(1, min(options.max_new_tokens, self._context // 2))
        room = min(options.prompt_tokens, self._context - answer)
        total = max(2, room - self._format.overhead)
        shares = Shares.of(options.context_sources, options.context_tokens, total)
        files, _ = fit_files(related, shares.files, self._count)
        lead = self._leads.lead(
            files,
            shares.files,
            path or _short_path(snapshot.uri),
            snapshot.language_id,
            total // _HEADER_SHARE,
        )
        room = total - len(lead.outside) - len(lead.inside)
        budget = Budget.split(room, max_suffix=MAX_SUFFIX_TOKENS)
        divided = self._divisible and options.order in ("line-in-middle", "lines-in-middle")
        anchored = divided and options.order == "lines-in-middle"
        kept, window = self._window(snapshot, cursor, budget, prefix_lines, shares.lines, anchored)
        head, healed = window.head, ""
        if options.heal and head == without_surrogates(head):
            start = self._codec.healing_start(head)
            head, healed = head[:start], head[start:]
        prefix, head = kept + window.above, window.middle + head
        if not divided:
            prefix, head = prefix + head, ""
        head = fit_end(head, budget.prefix, self._count_text)
        prefix = fit_end(prefix, budget.prefix - self._count_text(head), self._count_part)
        # Trained on files, which end with a newline; with nothing at all behind the cursor the model
        # begins a line of its own and repeats the indentation.
        suffix = fit_begin(window.suffix or "\n", budget.suffix, self._count_part)
        parts = FimParts(prefix, suffix, head, lead, suffix_first=options.order == "spm")
        ids = render(self._format, parts, self._codec)
        return BuiltPrompt(ids, healed, self._format.stop_ids, answer, window)

    def forget(self, uri: str) -> None:
        """Drop the anchor of a document that was closed."""
        self._anchors.forget(uri)

    def _window(
        self,
        snapshot: Snapshot,
        cursor: Point,
        budget: Budget,
        lines: Sequence[KeptLines],
        limit: int,
        anchored: bool,
    ) -> tuple[str, Window]:
        """The lines that stay visible above the window, at most ``limit`` tokens of them, and the window,
        which is smaller by what they take."""
        if anchored:
            # The anchor holds for one budget, so what the lines may take is set aside as a whole, and stays
            # so on lines of the document that have none.
            less = Budget(budget.prefix - limit, budget.suffix)
            room = limit if lines or self._anchors.holds(snapshot.uri, less) else 0
            less = less if room else budget
            window = self._anchors.choose(snapshot, cursor, less, self._count)
            return fit_lines(lines, window.first_line, room, self._count), window
        window = choose(snapshot, cursor, budget, self._count)
        room = reserve_for(lines, window.first_line, limit, self._count)
        if not room:
            return "", window
        window = choose(snapshot, cursor, budget, self._count, kept=room)
        return fit_lines(lines, window.first_line, room, self._count), window

    def _count_text(self, text: str) -> int:
        return len(self._codec.encode(without_surrogates(text))) if text else 0


def _short_path(uri: str) -> str:
    """The file's name and its folder's; a whole path would tell more than the model needs."""
    return "/".join(part for part in unquote(uri.partition("://")[2]).split("/")[-2:] if part)
