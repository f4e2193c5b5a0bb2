"""Waiting before work that the next key would throw away."""

from __future__ import annotations

import asyncio
import time


class Debounce:
    """Delay of automatic requests, counted from the document's last edit.

    Clients wait by themselves before they ask (Neovim 200 ms, LSP4IJ 300 ms, VS Code not at all); only
    what they have not already waited is added.
    """

    def __init__(self) -> None:
        self._edited: dict[str, float] = {}

    def edited(self, uri: str) -> None:
        """Note an edit."""
        self._edited[uri] = time.monotonic()

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._edited.pop(uri, None)

    async def wait(self, uri: str, milliseconds: float) -> None:
        """Return ``milliseconds`` after the last edit, at once if that is past."""
        edited = self._edited.get(uri)
        if edited is None or milliseconds <= 0:
            return
        left = milliseconds / 1000 - (time.monotonic() - edited)
        if left > 0:
            await asyncio.sleep(left)
