"""Chunks of a generation on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from inference.api import Chunk, Generation


async def chunks(generation: Generation) -> AsyncIterator[Chunk]:
    """The chunks as they come; ends with the generation, whatever its end is."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Chunk | None] = asyncio.Queue()

    def hand_over(chunk: Chunk | None) -> None:
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, chunk)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    generation.listen(hand_over)
    # Only now: a future that is done already calls back at once, and the chunks come first.
    generation.future.add_done_callback(lambda _: hand_over(None))
    while (chunk := await arrived.get()) is not None:
        yield chunk
