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
from lsp_server.context.window import Budget, Window, choose
from lsp_server.documents.positions import without_surrogates
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.context_files import ContextFile, LeadWriter
from lsp_server.prompts.fim import FimFormat, FimParts, find_format, render
from lsp_server.prompts.fit import fit_begin, fit_end

# The suffix is read anew for each line, behind a prefix that has changed, so its length is latency; its use
# falls off fast with the distance from the cursor.
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
        context_tokens: int = 0,
        path: str = "",
    ) -> BuiltPrompt:
        """The prompt for a place, with pieces of other places before it.

        Its tokens are at most ``options.prompt_tokens`` and ``context_tokens`` together, and with the
        answer's at most the engine's context. With the order "lines-in-middle" it also depends on the
        prompts that this object built before for the document (context/anchor.py).

        Args:
            related: pieces of other places, least related first. They stand before the document, so the same
                ones in the same order are read once.
            context_tokens: most tokens that they may take, beside the document's. Pieces that do not fit are
                left out, the least related first.
            path: the document's own as a reader would write it; by default the end of its URI.

        Raises:
            NoSuggestion: ``no-fim``.
        """
        if self._format is None or self._leads is None:
            raise NoSuggestion(Reason.NO_FIM)
        answer = max(1, min(options.max_new_tokens, self._context // 2))
        room = min(options.prompt_tokens, self._context - answer)
        total = max(2, room - self._format.overhead)
        lead = self._leads.lead(
            related,
            min(context_tokens, self._context - answer - room),
            path or _short_path(snapshot.uri),
            snapshot.language_id,
            total // _HEADER_SHARE,
        )
        budget = Budget.split(total - lead.header, max_suffix=MAX_SUFFIX_TOKENS)
        divided = self._divisible and options.order in ("line-in-middle", "lines-in-middle")
        if divided and options.order == "lines-in-middle":
            window = self._anchors.choose(snapshot, cursor, budget, self._count)
        else:
            window = choose(snapshot, cursor, budget, self._count)
        head, healed = window.head, ""
        if options.heal and head == without_surrogates(head):
            start = self._codec.healing_start(head)
            head, healed = head[:start], head[start:]
        prefix, head = window.above, window.middle + head
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

    def _count_text(self, text: str) -> int:
        return len(self._codec.encode(without_surrogates(text))) if text else 0


def _short_path(uri: str) -> str:
    """The file's name and its folder's; a whole path would tell more than the model needs."""
    return "/".join(part for part in unquote(uri.partition("://")[2]).split("/")[-2:] if part)
