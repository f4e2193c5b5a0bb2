"""Where the prompts of a document begin and where their middle begins, kept from request to request.

With the order "lines-in-middle" the last few lines stand behind the middle marker, so that a new line
changes nothing before it. Which lines these are is decided once, at the anchor, and holds until the user
has typed too much since, has left those lines, or has changed the text before them.

So a prompt depends on the requests before it, not only on the document and the cursor, and the answer may.
With the same requests in the same order it is the same; and the same prompt has the same answer as ever.
Without requests before it the anchor is the cursor's own line, as in the order "line-in-middle".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from lsp_server.context.window import Budget, Window, choose
from lsp_server.documents.text import Point, Snapshot

# What may stand between the anchor and the cursor's line.
MAX_LINES = 8
MAX_TOKENS = 160
# At most this share of the prefix's tokens.
_SHARE = 4
# Documents whose anchors are remembered.
_DOCUMENTS = 64


@dataclass(frozen=True)
class Anchor:
    """Attributes:
    line: the first one behind the middle marker.
    above: the lines of the window before it, as they were.
    lines: of the whole document at the last request.
    budget: for which the window was chosen.
    """

    line: int
    above: tuple[str, ...]
    lines: int
    budget: Budget

    @property
    def first(self) -> int:
        """The line at which the window begins."""
        return self.line - len(self.above)


class Anchors:
    """The anchors of the documents of late."""

    def __init__(self) -> None:
        self._anchors: OrderedDict[str, Anchor] = OrderedDict()

    def choose(
        self, snapshot: Snapshot, cursor: Point, budget: Budget, count: Callable[[str], int]
    ) -> Window:
        """The window around ``cursor`` as `window.choose`, with the anchor's begin where that still holds."""
        most = min(MAX_TOKENS, budget.prefix // _SHARE)
        # Room for what will be typed; without it the window would have to slide at once.
        fresh = choose(snapshot, cursor, Budget(budget.prefix - most, budget.suffix), count)
        anchor = self._followed(snapshot, budget)
        window = None if anchor is None else _anchored(anchor, snapshot, cursor, fresh, most, count)
        if window is None:
            window = fresh
            if anchor is not None:
                window = _extended(anchor, snapshot, cursor, fresh, budget.prefix - most, count)
        line = cursor.line - window.middle_lines
        above = snapshot.lines[window.first_line : line]
        self._anchors[snapshot.uri] = Anchor(line, above, len(snapshot.lines), budget)
        self._anchors.move_to_end(snapshot.uri)
        if len(self._anchors) > _DOCUMENTS:
            self._anchors.popitem(last=False)
        return window

    def holds(self, uri: str, budget: Budget) -> bool:
        """Whether a document has an anchor for a budget."""
        anchor = self._anchors.get(uri)
        return anchor is not None and anchor.budget == budget

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._anchors.pop(uri, None)

    def _followed(self, snapshot: Snapshot, budget: Budget) -> Anchor | None:
        """The document's anchor as far as the lines before it are what they were; None if it is gone.

        It moves along if lines came or went above its window, and up to the first line that has changed.
        """
        anchor = self._anchors.get(snapshot.uri)
        if anchor is None or anchor.budget != budget:
            return None
        best: Anchor | None = None
        for first in (anchor.first, anchor.first + len(snapshot.lines) - anchor.lines):
            if first < 0:
                continue
            now = snapshot.lines[first : first + len(anchor.above)]
            same = _common(now, anchor.above)
            if not same and anchor.above:
                continue  # another text
            if best is None or same > len(best.above):
                best = replace(anchor, line=first + same, above=now[:same])
        return best


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    if one == other:
        return len(one)
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return number
    return min(len(one), len(other))


def _anchored(
    anchor: Anchor, snapshot: Snapshot, cursor: Point, fresh: Window, most: int, count: Callable[[str], int]
) -> Window | None:
    """The window with the lines since the anchor in its middle; None if they are too many."""
    if not 0 <= cursor.line - anchor.line <= MAX_LINES:
        return None
    lines = snapshot.lf(anchor.line, cursor.line)
    typed = sum(count(snapshot.lf(number, number + 1)) for number in range(anchor.line, cursor.line))
    if typed + count(fresh.head) > most:
        return None
    above = snapshot.lf(anchor.first, anchor.line)
    return replace(fresh, above=above, middle=lines, first_line=anchor.first)


def _extended(
    anchor: Anchor, snapshot: Snapshot, cursor: Point, fresh: Window, room: int, count: Callable[[str], int]
) -> Window:
    """The fresh window with the anchor's begin, so that what was read of it stays, if all of it fits."""
    if cursor.line - anchor.first < (cursor.line - fresh.first_line) // 2:
        return fresh  # too little of what is above the cursor
    taken = count(fresh.head)
    for number in range(anchor.first, cursor.line):
        taken += count(snapshot.lf(number, number + 1))
        if taken > room:
            return fresh
    return replace(fresh, above=snapshot.lf(anchor.first, cursor.line), first_line=anchor.first)
