"""Memory while a prompt is decoded, with and without speculation."""

from __future__ import annotations

import os

from bench.machine import memory_of
from bench.peers.base import Decoder
from bench.records import Memory
from bench.speculation.roofline import random_tokens
from inference.api import Draft, GenerationRequest
from inference.precision import precision_of
from inference.runtime import Runtime

DECODED = 4  # tokens


def loaded_memory(runtime: Runtime, system: str, draft: Draft, context: int) -> Memory:
    """The most memory of this process while it decodes behind ``context`` tokens.

    ``context`` is cut to what the model holds.
    """
    context = min(context, runtime.context - DECODED)
    seen: list[tuple[int | None, int | None]] = []

    def look() -> None:
        # Asked before every forward: the slot is filled then, and the drafter has indexed it.
        seen.append(memory_of([os.getpid()]))

    prompt = tuple(random_tokens(runtime, context))
    request = GenerationRequest(prompt, max_new_tokens=DECODED, draft=draft, use_cache=False)
    runtime.run(request, lambda chunk: None, look)
    look()
    return Memory(
        system=system,
        numerics=str(precision_of(runtime.options)),
        draft=draft,
        context=context,
        private_bytes=_most([private for private, _ in seen]),
        mapped_bytes=_most([mapped for _, mapped in seen]),
        weight_bytes=runtime.weight_bytes,
        kv_bytes=runtime.slot_bytes,
    )


def peer_memory(peer: Decoder, numerics: str, context: int) -> Memory:
    """Of another system once it has decoded in all its modes, ``context`` tokens at most at a time."""
    usage = peer.usage()
    return Memory(
        system=peer.name,
        numerics=numerics,
        draft=", ".join(peer.modes),
        context=context,
        private_bytes=usage.private_bytes,
        mapped_bytes=usage.mapped_bytes,
        weight_bytes=None,
        kv_bytes=None,
    )


def _most(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
