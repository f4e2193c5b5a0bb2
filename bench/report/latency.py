"""Figures of the latency bench: what a typist waited for, and what it was worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.records import Item, Key
from bench.report.numbers import Spread, median, quotient, rate, share, spread
from bench.report.pairs import Comparison, differences, ratios

LIMITS_MS = (50, 100, 200)
FIRST_CHARS = 4
_BOUNDS = {"under 2k": 2_000, "2k to 8k": 8_000, "8k to 32k": 32_000}
SIZE_GROUPS = (*_BOUNDS, "32k and more")


@dataclass(frozen=True)
class Figures:
    """One system's keys and items. Shares are 0 .. 1, None where nothing is known.

    Attributes:
        answers: ms of all answers; model: of those that the model made.
        first, total: ms in the engine until the first token and until the result.
        within: share of all keys asked whose suggestion is on screen within so many ms.
        answered, shown, superseded, timeouts, errors: shares of all keys asked.
        from_cache, unasked: of the answers, those from a cache and those without asking the model or a cache.
        right: of the shown suggestions, as a whole; right_first: their first 4 characters, or all of a
            shorter one; right_char: their first character.
        saved: characters from suggestions for each character typed.
        reused: of the model calls' prompt tokens.
        new_tokens: prompt tokens computed in a model call; later_tokens: in one that is not the first of its
            item, where nothing can be known yet; tokens_per_key: of all these calls, for each key asked.
            What was computed for requests that got no answer is in neither.
        decoding: tokens per second after the first token.
        private_bytes, mapped_bytes: most over the items.
        cpu_seconds: for each key.
        restored: of the items; must be 1.
    """

    keys: int
    items: int
    answers: Spread
    model: Spread
    first: Spread
    total: Spread
    within: dict[int, float | None]
    answered: float | None
    shown: float | None
    superseded: float | None
    timeouts: float | None
    errors: float | None
    from_cache: float | None
    unasked: float | None
    right: float | None
    right_first: float | None
    right_char: float | None
    saved: float | None
    reused: float | None
    new_tokens: Spread
    later_tokens: Spread
    tokens_per_key: float | None
    tokens_per_forward: float | None
    acceptance: float | None
    decoding: float | None
    private_bytes: int | None
    mapped_bytes: int | None
    cpu_seconds: float | None
    restored: float | None


def answered(key: Key) -> bool:
    """An answer came, with a suggestion or without. An error may come fast and is no answer."""
    return key.outcome in ("shown", "nothing") and key.ms is not None


def of_model(key: Key) -> bool:
    """The model made the answer, not a cache."""
    return answered(key) and key.source == "model"


def _later(model: Sequence[Key]) -> list[Key]:
    first: dict[int, int] = {}
    for key in model:
        first[key.item] = min(key.index, first.get(key.item, key.index))
    return [key for key in model if key.index != first[key.item]]


def _tokens_per_key(model: Sequence[Key], keys: int) -> float | None:
    known = [key.new_tokens for key in model if key.new_tokens is not None]
    return quotient(sum(known), keys) if known else None


def on_screen(key: Key, limit_ms: float) -> bool:
    """A suggestion was on screen within the limit."""
    return key.outcome == "shown" and key.ms is not None and key.ms <= limit_ms


def figures(keys: Sequence[Key], items: Sequence[Item]) -> Figures:
    """Of one system, or of one group of its keys."""
    answers = [key for key in keys if answered(key)]
    model = [key for key in keys if of_model(key)]
    shown = [key for key in keys if key.outcome == "shown"]
    return Figures(
        keys=len(keys),
        items=len(items),
        answers=spread(key.ms for key in answers),
        model=spread(key.ms for key in model),
        first=spread(key.first_ms for key in model),
        total=spread(key.model_ms for key in model),
        within={limit: share(on_screen(key, limit) for key in keys) for limit in LIMITS_MS},
        answered=quotient(len(answers), len(keys)),
        shown=quotient(len(shown), len(keys)),
        superseded=share(key.outcome == "superseded" for key in keys),
        timeouts=share(key.outcome == "timeout" for key in keys),
        errors=share(key.outcome == "error" for key in keys),
        from_cache=share(key.source == "cache" for key in answers),
        unasked=share(key.source == "none" for key in answers),
        right=share(key.right for key in shown),
        right_first=share(key.right_chars >= min(FIRST_CHARS, len(key.text)) for key in shown),
        right_char=share(key.right_chars > 0 for key in shown),
        saved=quotient(sum(item.accepted_chars for item in items), sum(item.typed_chars for item in items)),
        reused=rate(model, lambda key: key.cached_tokens, lambda key: key.prompt_tokens),
        new_tokens=spread(key.new_tokens for key in model),
        later_tokens=spread(key.new_tokens for key in _later(model)),
        tokens_per_key=_tokens_per_key(model, len(keys)),
        tokens_per_forward=rate(model, _decoded, lambda key: key.forwards),
        acceptance=rate(model, lambda key: key.accepted, lambda key: key.drafted),
        decoding=rate(model, _decoded, _decode_seconds),
        private_bytes=_most(item.private_bytes for item in items),
        mapped_bytes=_most(item.mapped_bytes for item in items),
        cpu_seconds=quotient(
            sum(item.cpu_seconds for item in items if item.cpu_seconds is not None),
            sum(item.keys for item in items if item.cpu_seconds is not None),
        ),
        restored=share(item.restored for item in items),
    )


def size_group(chars: int) -> str:
    """The name of a range of sizes."""
    return next((name for name, bound in _BOUNDS.items() if chars < bound), SIZE_GROUPS[-1])


def compare(ours: Sequence[Key | Item], theirs: Sequence[Key | Item], other: str) -> list[Comparison]:
    """Draftline's records against another system's, over the items that both finished."""
    mine, others = _ByItem(ours), _ByItem(theirs)
    found = [
        ratios(what, "", other, unit, mine.medians(value), others.medians(value))
        for what, unit, value in (
            ("all answers", "ms", lambda key: key.ms if answered(key) else None),
            ("answers of the model", "ms", lambda key: key.ms if of_model(key) else None),
            ("first token in the engine", "ms", lambda key: key.first_ms if of_model(key) else None),
            ("new prompt tokens", "tokens", lambda key: key.new_tokens if of_model(key) else None),
        )
    ]
    found += [
        ratios(what, "", other, unit, mine.of_items(measure), others.of_items(measure))
        for what, unit, measure in (
            ("CPU time per key", "s", lambda item: quotient(item.cpu_seconds, item.keys)),
            ("private memory", "MB", lambda item: quotient(item.private_bytes, 1e6)),
            ("private memory and mapped files", "MB", _whole_memory),
        )
    ]
    found += [
        differences(what, "", other, mine.shares(flag), others.shares(flag))
        for what, flag in (
            ("on screen within 100 ms", lambda key: on_screen(key, 100)),
            ("a right suggestion shown", lambda key: key.outcome == "shown" and key.right),
        )
    ]
    found.append(
        differences(
            "removed characters that suggestions brought back",
            "",
            other,
            mine.of_items(lambda item: quotient(item.accepted_chars, item.removed_chars)),
            others.of_items(lambda item: quotient(item.accepted_chars, item.removed_chars)),
        )
    )
    return [comparison for comparison in found if comparison is not None]


class _ByItem:
    """One value of each finished item: a stopped run leaves one that has only its first keys."""

    def __init__(self, records: Sequence[Key | Item]) -> None:
        self._items = [record for record in records if isinstance(record, Item)]
        finished = {item.item for item in self._items}
        self._keys: dict[int, list[Key]] = {}
        for record in records:
            if isinstance(record, Key) and record.item in finished:
                self._keys.setdefault(record.item, []).append(record)

    def medians(self, value: Callable[[Key], float | None]) -> dict[int, float]:
        """Of the item's keys for which the value is known."""
        found = {
            item: median([known for key in keys if (known := value(key)) is not None])
            for item, keys in self._keys.items()
        }
        return {item: known for item, known in found.items() if known is not None}

    def shares(self, flag: Callable[[Key], bool]) -> dict[int, float]:
        """Of all the item's keys."""
        return {item: sum(map(flag, keys)) / len(keys) for item, keys in self._keys.items()}

    def of_items(self, measure: Callable[[Item], float | None]) -> dict[int, float]:
        """Of the items for which the measure is known."""
        return {item.item: known for item in self._items if (known := measure(item)) is not None}


def _decoded(key: Key) -> float | None:
    """Tokens after the first, which the prompt's last forward gives."""
    return None if key.tokens is None else max(key.tokens - 1, 0)


def _decode_seconds(key: Key) -> float | None:
    if key.model_ms is None or key.first_ms is None:
        return None
    return (key.model_ms - key.first_ms) / 1000


def _whole_memory(item: Item) -> float | None:
    if item.private_bytes is None or item.mapped_bytes is None:
        return None
    return (item.private_bytes + item.mapped_bytes) / 1e6


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
