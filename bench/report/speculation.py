"""Figures of the speculation bench: what drafting brings over plain decoding, and over other systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bench.records import DRAFTERS, Call
from bench.report.numbers import median, rate, share
from bench.report.pairs import Comparison, ratios
from bench.report.systems import is_ours, labels

PLAIN = ("none", "plain")
SETS = ("fim", "real", "edit", "fresh")
# In the order of preference for what a user of Draftline gets.
_OWN_MODES = ("auto", "ngram", "none")
_SWEEP = "<="

Pair: TypeAlias = "tuple[int, int]"  # item and repeat


@dataclass(frozen=True)
class Figures:
    """One system in one mode on one set. None where nothing is known.

    Attributes:
        tokens_per_forward: (tokens - 1) / forwards; the first token belongs to the prompt.
        acceptance: accepted / drafted tokens.
        speed: (tokens - 1) per second of decoding.
        first_ms: median.
        prompt_speed: prompt tokens computed per second.
        lossless: share of calls with the same tokens as plain decoding of the same item.
        over_plain: speed against the plain mode of the same system, None for that mode.
    """

    calls: int
    tokens_per_forward: float | None
    acceptance: float | None
    speed: float | None
    first_ms: float | None
    prompt_speed: float | None
    lossless: float | None
    over_plain: Comparison | None


class Calls:
    """The calls of one run, found by set, system and mode; the sweep of the draft length is apart."""

    def __init__(self, calls: Iterable[Call]) -> None:
        calls = list(calls)
        names = labels(calls)
        self._groups: dict[tuple[str, str, str, bool], list[Call]] = {}
        for call in calls:
            key = (call.set, names[call.system, call.numerics], call.mode, call.sweep)
            self._groups.setdefault(key, []).append(call)
        found = {call.set for call in calls}
        self.sets = [*(name for name in SETS if name in found), *sorted(found - set(SETS))]
        used = {group[1] for group in self._groups}
        self.systems = [name for name in names.values() if name in used]

    def modes(self, set_: str, system: str, sweep: bool = False) -> list[str]:
        """In which a system decoded a set, plain ones first."""
        modes = [
            mode for in_set, by, mode, swept in self._groups if (in_set, by, swept) == (set_, system, sweep)
        ]
        return sorted(modes, key=lambda mode: mode not in PLAIN)

    def of(self, set_: str, system: str, mode: str, sweep: bool = False) -> list[Call]:
        """The calls of a group, none if there is no such group."""
        return self._groups.get((set_, system, mode, sweep), [])

    def plain(self, set_: str, system: str, sweep: bool = False) -> list[Call]:
        """The plain calls of a system; those of the sweep if that has its own."""
        for swept in (True, False) if sweep else (False,):
            for mode in self.modes(set_, system, swept):
                if mode in PLAIN:
                    return self.of(set_, system, mode, swept)
        return []


def figures(calls: Sequence[Call], plain: Sequence[Call]) -> Figures:
    """Of one group of calls; ``plain`` are those of the same system and set."""
    digests = {(call.item, call.repeat): call.digest for call in plain if call.digest}
    compared = [(call, digests.get((call.item, call.repeat))) for call in calls if call.digest]
    own = bool(calls) and calls[0].mode in PLAIN
    return Figures(
        calls=len(calls),
        tokens_per_forward=rate(calls, lambda call: call.tokens - 1, lambda call: call.forwards),
        acceptance=rate(calls, lambda call: call.accepted, lambda call: call.drafted),
        speed=speed_of(calls),
        first_ms=median([call.first_ms for call in calls]),
        prompt_speed=rate(
            calls, lambda call: call.prompt_tokens - call.cached_tokens, lambda call: call.prompt_ms / 1000
        ),
        lossless=None if own else share(call.digest == digest for call, digest in compared if digest),
        over_plain=None if own else faster("plain decoding", "", "", calls, plain),
    )


def speed_of(calls: Sequence[Call]) -> float | None:
    """Tokens after the first per second, over all calls together."""
    return rate(calls, lambda call: call.tokens - 1, lambda call: call.decode_ms / 1000)


def faster(
    what: str, group: str, other: str, calls: Sequence[Call], others: Sequence[Call]
) -> Comparison | None:
    """Decoding speed of two groups of calls, pair by pair: the same item and repeat."""
    return ratios(what, group, other, "tokens/s", _speeds(calls), _speeds(others), "higher", _item)


def by_position(calls: Iterable[Call], positions: int) -> list[tuple[int, int]]:
    """For each place in a draft from the first: how often it was drafted, and how often accepted."""
    found = [(0, 0)] * positions
    for _, drafted, accepted, _ in _drafts(calls):
        for place in range(min(drafted, positions)):
            tried, right = found[place]
            found[place] = (tried + 1, right + (accepted > place))
    return found


def by_match(calls: Iterable[Call], bounds: Sequence[int]) -> list[tuple[int, int, int]]:
    """By length of the matched context, up to each bound and beyond the last: drafts, drafted and accepted
    tokens. A draft model matches nothing and is left out."""
    found = [(0, 0, 0)] * (len(bounds) + 1)
    for match, drafted, accepted, drafter in _drafts(calls):
        if drafter == "model":
            continue
        place = sum(match > bound for bound in bounds)
        drafts, tokens, right = found[place]
        found[place] = (drafts + 1, tokens + drafted, right + accepted)
    return found


def by_drafter(calls: Iterable[Call]) -> dict[str, tuple[int, int, int]]:
    """For each drafter that was used: drafts, drafted and accepted tokens."""
    found: dict[str, tuple[int, int, int]] = {}
    for _, drafted, accepted, name in _drafts(calls):
        drafts, tokens, right = found.get(name, (0, 0, 0))
        found[name] = (drafts + 1, tokens + drafted, right + accepted)
    return dict(sorted(found.items(), key=lambda entry: DRAFTERS.index(entry[0])))


def sweep(calls: Calls, set_: str, system: str) -> dict[int, Comparison]:
    """Speed against plain decoding for each greatest draft length of the sweep."""
    plain = calls.plain(set_, system, sweep=True)
    found = {}
    for mode in calls.modes(set_, system, sweep=True):
        _, bound, length = mode.partition(_SWEEP)
        if bound and length.isdecimal():
            against = faster(mode, set_, "", calls.of(set_, system, mode, sweep=True), plain)
            if against is not None:
                found[int(length)] = against
    return dict(sorted(found.items()))


def best_mode(calls: Calls, set_: str, system: str) -> str | None:
    """The mode with the most tokens per second, None if no mode has any."""
    speeds = {mode: speed_of(calls.of(set_, system, mode)) for mode in calls.modes(set_, system)}
    known = {mode: speed for mode, speed in speeds.items() if speed is not None}
    return max(known, key=lambda mode: known[mode]) if known else None


def compare(calls: Calls) -> list[Comparison]:
    """Draftline as its users get it against every other system at its best, and both without speculation."""
    ours = next((system for system in calls.systems if is_ours(system)), None)
    if ours is None:
        return []
    found: list[Comparison | None] = []
    for set_ in calls.sets:
        own = next((mode for mode in _OWN_MODES if calls.of(set_, ours, mode)), None)
        if own is None:
            continue
        mine = calls.of(set_, ours, own)
        for system in calls.systems:
            mode = best_mode(calls, set_, system)
            if system == ours or mode is None:
                continue
            theirs = calls.of(set_, system, mode)
            plain = calls.plain(set_, ours), calls.plain(set_, system)
            found += [
                faster(f"decoding: {own} with {mode}", set_, system, mine, theirs),
                faster("decoding: both plain", set_, system, *plain),
                ratios("first token", set_, system, "ms", _firsts(mine), _firsts(theirs), "lower", _item),
            ]
    return [comparison for comparison in found if comparison is not None]


def _item(pair: Pair) -> int:
    return pair[0]


def _speeds(calls: Iterable[Call]) -> Mapping[Pair, float]:
    return {
        (call.item, call.repeat): 1000 * (call.tokens - 1) / call.decode_ms
        for call in calls
        if call.tokens > 1 and call.decode_ms > 0
    }


def _firsts(calls: Iterable[Call]) -> Mapping[Pair, float]:
    return {(call.item, call.repeat): call.first_ms for call in calls}


def _drafts(calls: Iterable[Call]) -> Iterable[tuple[int, int, int, str]]:
    """Match, drafted, accepted and drafter of each forward that had a draft."""
    for call in calls:
        for match, drafted, accepted, _, _, *drafter in call.steps:
            if drafted > 0:
                name = DRAFTERS[int(drafter[0])] if drafter else DRAFTERS[1]
                yield int(match), int(drafted), int(accepted), name
