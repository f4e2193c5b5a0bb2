"""The same prompts decoded by several systems in several modes, by turns."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.peers.base import PAUSE_S, Decoded, Decoder
from bench.records import Call
from bench.speculation.prompts import SetPrompt

# Enough for a draft to be verified once or twice.
WARM_UP_TOKENS = 8


@dataclass(frozen=True)
class Way:
    """A system in one of its modes."""

    decoder: Decoder
    mode: str
    numerics: str

    def decode(self, prompt: SetPrompt, max_tokens: int) -> Decoded:
        """Continue a prompt.

        Raises:
            PeerFailed: the system does not answer.
        """
        return self.decoder.decode(prompt.prompt, self.mode, max_tokens, prompt.stop_ids)


def ways_of(decoder: Decoder, modes: Sequence[str]) -> list[Way]:
    """A started system in some modes."""
    numerics = numerics_of(decoder)
    return [Way(decoder, mode, numerics) for mode in modes]


def numerics_of(decoder: Decoder) -> str:
    """As a started system describes itself; "" if it says nothing."""
    return str(decoder.describe().get("numerics", ""))


def warm_up(ways: Iterable[Way], prompts: Sequence[SetPrompt]) -> None:
    """Decode a few tokens of the shortest prompt in every way: kernels are built, memory is touched.

    Raises:
        PeerFailed: a system does not answer.
    """
    shortest = min(prompts, key=lambda prompt: len(prompt.prompt.ids))
    for way in ways:
        way.decode(shortest, min(WARM_UP_TOKENS, shortest.max_tokens))


def by_turns(
    ways: Sequence[Way], prompts: Sequence[SetPrompt], repeats: int, sweep: bool = False
) -> Iterator[Call]:
    """Every prompt in every way, ``repeats`` times.

    All ways of one prompt follow each other, so that what else the machine does hits them alike; the first
    one changes from prompt to prompt. Where there are several systems, a pause comes before each change.

    Raises:
        PeerFailed: a system does not answer.
    """
    several = any(way.decoder is not ways[0].decoder for way in ways)
    before: Decoder | None = None
    for repeat in range(repeats):
        for number, prompt in enumerate(prompts):
            first = (number + repeat) % len(ways)
            for way in (*ways[first:], *ways[:first]):
                if several and way.decoder is not before:
                    time.sleep(PAUSE_S)
                before = way.decoder
                yield _call(way, prompt, repeat, way.decode(prompt, prompt.max_tokens), sweep)


def differing(calls: Iterable[Call], system: str) -> list[Call]:
    """Calls of a system that decoded other tokens than its first call of the same prompt and numerics."""
    first: dict[tuple[str, int, str], str] = {}
    different = []
    for call in calls:
        if call.system != system:
            continue
        digest = first.setdefault((call.set, call.item, call.numerics), call.digest)
        if call.digest != digest:
            different.append(call)
    return different


def _call(way: Way, prompt: SetPrompt, repeat: int, decoded: Decoded, sweep: bool) -> Call:
    return Call(
        system=way.decoder.name,
        set=prompt.set,
        item=prompt.item,
        mode=way.mode,
        repeat=repeat,
        numerics=way.numerics,
        prompt_tokens=decoded.prompt_tokens,
        cached_tokens=decoded.cached_tokens,
        tokens=decoded.tokens,
        prompt_ms=decoded.prompt_ms,
        first_ms=decoded.first_ms,
        decode_ms=decoded.decode_ms,
        drafted=decoded.drafted,
        accepted=decoded.accepted,
        forwards=decoded.forwards,
        digest=_digest(decoded.token_ids),
        steps=[list(step) for step in decoded.steps],
        sweep=sweep,
    )


def _digest(ids: tuple[int, ...]) -> str:
    return hashlib.sha256(" ".join(map(str, ids)).encode("ascii")).hexdigest() if ids else ""
