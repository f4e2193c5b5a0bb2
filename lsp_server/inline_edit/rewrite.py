"""One answer on its way from text to hunks: read, laid out and compared line by line as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.context.secrets import secrets_in
from lsp_server.inline_edit.answer import AnswerReader
from lsp_server.inline_edit.checks import flags_of, summary, whole_text
from lsp_server.inline_edit.diff import Hunk, OpenHunk, StreamingDiff, apply
from lsp_server.inline_edit.edited import Edited
from lsp_server.inline_edit.layout import Layout, Restorer
from lsp_server.inline_edit.nesting import defines_again
from lsp_server.inline_edit.reasons import Flag, NoEdit, NoEditError
from lsp_server.inline_edit.selection import Selection
from lsp_server.inline_edit.trim import Trimmer


@dataclass(frozen=True)
class Progress:
    """What is certain so far.

    Attributes:
        hunks: final ones, in order; later progress only adds to them.
        open: what has begun behind them.
        kept: lines of the selection that the answer has reached.
    """

    hunks: tuple[Hunk, ...]
    open: OpenHunk | None
    kept: int


@dataclass(frozen=True)
class Rewritten:
    """A finished edit of a selection.

    Attributes:
        lines: the selection's lines afterwards.
    """

    hunks: tuple[Hunk, ...]
    lines: tuple[str, ...]
    flags: tuple[Flag, ...]
    summary: str


class Rewrite:
    """Follows one answer."""

    def __init__(self, selection: Selection, instruction: str, layout: Layout, fence: str = "```") -> None:
        self._selection = selection
        self._instruction = instruction
        self._old = selection.lines
        self._reader = AnswerReader(layout.shown(self._old), fence)
        self._trimmer = Trimmer(selection, instruction)
        self._restorer = Restorer(layout)
        self._diff = StreamingDiff(self._old)
        # The model saw these lines with other characters in place of the secrets, and would write those.
        lines = selection.snapshot.lines[selection.first : selection.stop]
        self._secret = frozenset(number for number, line in enumerate(lines) if secrets_in(line))

    @property
    def done(self) -> bool:
        """The answer's code has ended, or there can be no edit; nothing that follows matters."""
        return self._reader.done or self._changes_secret

    @property
    def differs(self) -> bool:
        """Whether a line has come that is not the selection's next one, shown or not yet."""
        return self._diff.differs

    @property
    def progress(self) -> Progress:
        """As far as it is safe to show: lines that the selection holds in part wait for the end, and lines
        that hold a secret are never among them."""
        hunks = [hunk for hunk in self._diff.hunks if self._is_safe(hunk.start, hunk.stop)]
        open = self._diff.open
        if open is not None and not self._is_safe(open.start, open.start + 1):
            open = None
        return Progress(tuple(hunks), open, self._diff.kept)

    def feed(self, text: str) -> bool:
        """More of the answer; whether there is new progress."""
        before = self._seen()
        self._push(self._reader.feed(text))
        return self._seen() != before

    def finish(self, truncated: bool = False) -> Rewritten:
        """The answer has ended; ``truncated``: by a limit.

        Raises:
            NoEditError: ``secret``, ``no-code``, ``unchanged``, ``outside-selection``.
        """
        truncated = truncated and not self._reader.done
        if not truncated:  # else the last line is broken off
            self._push(self._reader.finish())
            self._place(self._trimmer.finish())
            if not self._no_code:
                self._diff.finish()
        if self._changes_secret:
            raise NoEditError(NoEdit.SECRET)
        if self._reader.no_code or (self._no_code and not truncated):
            raise NoEditError(NoEdit.NO_CODE)
        hunks = self._diff.hunks
        if not hunks and not truncated:
            raise NoEditError(NoEdit.UNCHANGED)
        lines = apply(self._old, hunks)
        selection = self._selection
        if not selection.keeps_outside(lines):
            raise NoEditError(NoEdit.OUTSIDE)
        whole = whole_text(selection.snapshot, selection.first, selection.stop, lines)
        edited = Edited(selection.snapshot, whole)
        flags = flags_of(
            edited,
            self._old,
            lines,
            self._instruction,
            truncated,
            beyond=self._trimmer.beyond or defines_again(selection, lines, edited),
            lacks_import=self._trimmer.lacks_import(self._old, lines),
        )
        return Rewritten(tuple(hunks), tuple(lines), tuple(flags), summary(self._old, lines))

    def _push(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._place(self._trimmer.push(line))

    def _place(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._diff.push(self._restorer.restore(line))

    @property
    def _no_code(self) -> bool:
        """The answer was chatter, or only what stands around the selection."""
        return self._reader.no_code or self._trimmer.empty

    @property
    def _changes_secret(self) -> bool:
        hunks = self._diff.hunks if self._secret else ()
        return any(not self._secret.isdisjoint(range(hunk.start, hunk.stop)) for hunk in hunks)

    def _is_safe(self, start: int, stop: int) -> bool:
        selection = self._selection
        if not self._secret.isdisjoint(range(start, stop)) or (selection.head and start == 0):
            return False
        return not (selection.tail and stop >= len(self._old))

    def _seen(self) -> tuple[int, int, int]:
        open = self._diff.open
        return len(self._diff.hunks), len(open.lines) if open else 0, self._diff.kept
