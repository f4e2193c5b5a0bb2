"""What a run of typing showed."""

from __future__ import annotations

import difflib
import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """One run.

    Attributes:
        editor, server, cores: in words.
        wanted, buffer: the document as it should be in the end, and as it is.
        per_second: the pace of the keys that was asked for.
        milliseconds: from sending each key to reading the screen that shows it, with the cursor behind it and
            everything in front of it right.
        requests, suggestions: of the server.
        painted: how often the editor painted ghost text.
        stale: ghost text that did not fit the text, or that the server never gave for it.
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
    messages: tuple[str, ...] = field(default=())

    def percentile(self, percent: float) -> float:
        """Of the milliseconds, by the nearest rank."""
        values = sorted(self.milliseconds)
        return values[max(0, math.ceil(percent / 100 * len(values)) - 1)]

    def faults(self) -> list[str]:
        """All that must not happen; empty if the run was right. Times are none of it."""
        found: list[str] = []
        matcher = difflib.SequenceMatcher(None, self.wanted, self.buffer, autojunk=False)
        for kind, i1, i2, j1, j2 in matcher.get_opcodes():
            if kind != "equal":
                found.append(f"the buffer has {self.buffer[j1:j2]!r} in place of {self.wanted[i1:i2]!r}")
        found += [f"stale ghost text: {text}" for text in self.stale]
        found += [f"message: {text}" for text in self.messages]
        if not self.painted:
            found.append("no ghost text was ever painted")
        return found

    def to_json(self) -> dict[str, Any]:
        """For a record."""
        values = asdict(self)
        del values["wanted"], values["buffer"]
        return {**values, "faults": self.faults(), "p50": self.percentile(50), "p95": self.percentile(95)}

    def lines(self) -> list[str]:
        """For people."""
        faults = self.faults()
        return [
            f"{self.editor}; server: {self.server}; {self.cores}",
            f"{len(self.milliseconds)} characters at {self.per_second:g} per second: "
            + ("; ".join(faults) if faults else "none dropped, none doubled, no message, nothing stale"),
            f"{self.requests} requests, {self.suggestions} suggestions, painted {self.painted} times",
            f"from key to painted character, ms: median {self.percentile(50):.1f}, "
            f"p95 {self.percentile(95):.1f}, p99 {self.percentile(99):.1f}, "
            f"worst {max(self.milliseconds):.1f}",
        ]
