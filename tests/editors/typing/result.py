"""What a run of typing showed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """One run.

    Attributes:
        editor, server, cores: in words.
        wanted, buffer: the document as it should be in the end, and as it is.
        per_second: the pace of the keys that was asked for.
        milliseconds: from each key to the screen or frame that shows it and all in front of it right.
        requests, suggestions: of the server.
        painted: how often the editor painted ghost text.
        stale: what was painted and is wrong: ghost text that the server never gave for the text around it, or
            a text that was never typed.
        messages: errors, and all else that the editor said.
    """

    editor: str
    server: str
    cores: str
    wanted: str
    buffer: str
    per_second: float
    milliseconds: tuple[float, ...]
    requests: int
    suggestions: int
    painted: int
    stale: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()

    def percentile(self, percent: float) -> float:
        """Of the milliseconds, by the nearest rank; not a number if there are none."""
        values = sorted(self.milliseconds)
        return values[max(0, math.ceil(percent / 100 * len(values)) - 1)] if values else math.nan

    def differences(self) -> list[tuple[str, str]]:
        """Where the document is not as it should be: what should be there, and what is."""
        matcher = difflib.SequenceMatcher(None, self.wanted, self.buffer, autojunk=False)
        return [
            (self.wanted[i1:i2], self.buffer[j1:j2])
            for kind, i1, i2, j1, j2 in matcher.get_opcodes()
            if kind != "equal"
        ]

    @property
    def dropped(self) -> int:
        """Characters that are missing in the document."""
        return sum(len(wanted) for wanted, _ in self.differences())

    @property
    def doubled(self) -> int:
        """Characters in the document that should not be there."""
        return sum(len(there) for _, there in self.differences())

    def faults(self) -> list[str]:
        """All that must not happen; empty if the run was right. Times are none of it."""
        found = [f"the buffer has {there!r} in place of {wanted!r}" for wanted, there in self.differences()]
        found += [f"stale: {text}" for text in self.stale]
        found += [f"message: {text}" for text in self.messages]
        if not self.painted:
            found.append("no ghost text was ever painted")
        return found

    def to_json(self) -> dict[str, Any]:
        """For a record."""
        values = asdict(self)
        del values["wanted"], values["buffer"]
        return {**values, "faults": self.faults(), "p50": self.percentile(50), "p95": self.percentile(95)}


_COLUMNS = ("editor", "keys", "dropped", "doubled", "stale", "errors", "suggestions", "p50 ms", "p95 ms")
_MOST_FAULTS = 5  # of one run, in the table


def table(results: Sequence[Result]) -> list[str]:
    """A line for each run below a head, and then what is wrong with which."""
    rows = [_COLUMNS]
    for each in results:
        counts = (len(each.milliseconds), each.dropped, each.doubled, len(each.stale), len(each.messages))
        times = (f"{each.percentile(percent):.1f}" for percent in (50, 95))
        rows.append((each.editor, *map(str, counts), str(each.suggestions), *times))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        filled = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *filled]))
    for each in results:
        lines.append(f"{each.editor}: {each.cores}; {each.requests} requests, painted {each.painted} times")
        faults = [f"{each.editor}: {fault}" for fault in each.faults()]
        lines += faults[:_MOST_FAULTS]
        if len(faults) > _MOST_FAULTS:
            lines.append(f"{each.editor}: and {len(faults) - _MOST_FAULTS} more")
    return lines
