"""How suggestions were used on this machine: counts and times, no text and no names. Never sent anywhere."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from inference.api import GenerationResult
from inference.errors import DraftlineError
from inference.weights.disk import read_json, write_json

FORMAT = 1
# Times that are kept, the newest ones.
WINDOW = 512
# What `Statistics` counts, in the order of reports.
COUNTS = (
    "requests",
    "shown",
    "acceptedWhole",
    "acceptedLine",
    "acceptedWord",
    "charactersAccepted",
    "charactersTyped",
    "newPromptTokens",
    "decodedTokens",
    "prefetches",
    "prefetchPromptTokens",
    "prefetchDecodedTokens",
)
# Reasons and sources are names of ours; a damaged file must not bring others.
_NAME = re.compile(r"[a-z][a-z0-9:-]{0,63}")
_MAX_NAMES = 64
_LOCK_SECONDS = 0.5


@dataclass
class Totals:
    """Sums since the file was begun.

    Attributes:
        counts: by the names in `COUNTS`.
        reasons: requests without a suggestion, by reason code.
        sources: suggestions by who made them: "cache", "prefetch", "stream" or "model".
        latency_ms: milliseconds from a request to its suggestion, of the last `WINDOW`.
    """

    counts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    latency_ms: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Totals:
        """What a file holds; whatever of it is damaged counts as nothing."""
        value = read_json(path)
        if value is None or value.get("format") != FORMAT:
            return cls()
        counts = {name: n for name, n in _counts(value.get("counts")).items() if name in COUNTS}
        times = value.get("latencyMs")
        times = [t for t in times if _is_count(t)] if isinstance(times, list) else []
        return cls(
            counts,
            {name: n for name, n in _counts(value.get("reasons")).items() if _NAME.fullmatch(name)},
            {name: n for name, n in _counts(value.get("sources")).items() if _NAME.fullmatch(name)},
            times[-WINDOW:],
        )

    def plus(self, other: Totals) -> Totals:
        """Both together."""
        return Totals(
            _sum(self.counts, other.counts),
            _sum(self.reasons, other.reasons),
            _sum(self.sources, other.sources),
            (self.latency_ms + other.latency_ms)[-WINDOW:],
        )

    def percentile(self, share: float) -> int | None:
        """Milliseconds within which ``share`` of the suggestions of the window came, None without any."""
        times = sorted(self.latency_ms)
        return times[min(len(times) - 1, int(share * len(times)))] if times else None

    def to_json(self) -> dict[str, Any]:
        """As stored."""
        return {
            "format": FORMAT,
            "counts": {name: self.counts.get(name, 0) for name in COUNTS},
            "reasons": dict(sorted(self.reasons.items())),
            "sources": dict(sorted(self.sources.items())),
            "latencyMs": self.latency_ms,
        }

    def report(self) -> dict[str, Any]:
        """As shown: percentiles in place of the times."""
        values = self.to_json()
        del values["format"], values["latencyMs"]
        values["latencyMs"] = {"p50": self.percentile(0.5), "p95": self.percentile(0.95)}
        return values


class Statistics:
    """Collects what happens in this process and adds it to the file now and then.

    Attributes:
        enabled: the user's setting; while it is off nothing is counted or written.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Without a ``path`` nothing is stored."""
        self.enabled = True
        self._path = path
        self._new = Totals()
        self._times: deque[int] = deque(maxlen=WINDOW)

    def count(self, name: str, by: int = 1) -> None:
        """Add to one of `COUNTS`."""
        if self.enabled:
            self._new.counts[name] = self._new.counts.get(name, 0) + by

    def answered(self, source: str, reason: str, ms: float) -> None:
        """A request was answered: with a suggestion of ``source``, or without one for ``reason``."""
        if not self.enabled:
            return
        self.count("requests")
        if reason:
            self._new.reasons[reason] = self._new.reasons.get(reason, 0) + 1
        else:
            self.count("shown")
            self._new.sources[source] = self._new.sources.get(source, 0) + 1
            self._times.append(round(ms))

    def generated(self, result: GenerationResult, *, prefetch: bool) -> None:
        """The engine ended an answer, wanted or not."""
        kind = (
            ("prefetchPromptTokens", "prefetchDecodedTokens")
            if prefetch
            else ("newPromptTokens", "decodedTokens")
        )
        if result.token_ids:  # else the prompt may not have been read to its end
            self.count(kind[0], result.prompt_tokens - result.cached_tokens)
            self.count(kind[1], len(result.token_ids))

    def totals(self) -> Totals:
        """What is stored, with what this process has not stored yet."""
        new = Totals(self._new.counts, self._new.reasons, self._new.sources, list(self._times))
        return new if self._path is None else Totals.read(self._path).plus(new)

    def save(self) -> bool:
        """Add to the file, which other servers of the user may write too; False if it cannot be done now."""
        new = Totals(self._new.counts, self._new.reasons, self._new.sources, list(self._times))
        if self._path is None or not self.enabled or new == Totals():
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._path.with_suffix(".lock"), timeout=_LOCK_SECONDS):
                write_json(self._path, Totals.read(self._path).plus(new).to_json())
        except (DraftlineError, OSError, Timeout):
            return False
        self._new = Totals()
        self._times.clear()
        return True


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    good = {name: n for name, n in value.items() if isinstance(name, str) and _is_count(n)}
    return dict(list(good.items())[:_MAX_NAMES])


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
