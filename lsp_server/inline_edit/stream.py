"""Chunks of a generation on the event loop."""

from __future__ import annotations

import asyncio
import threading
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

    def pump() -> None:
        try:
            for chunk in generation.chunks():
                hand_over(chunk)
        finally:
            hand_over(None)

    threading.Thread(target=pump, name="draftline-edit-stream", daemon=True).start()
    while (chunk := await arrived.get()) is not None:
        yield chunk
