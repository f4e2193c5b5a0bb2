"""All items in all systems: the same items, one system after the other for each, in changing order."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence

from bench.peers.base import PAUSE_S, Editor, PeerFailed
from bench.records import Item, Key
from bench.replay.items import ReplayItem
from bench.replay.typist import Manner, Typist


class Replay:
    """Runs a replay. Systems that fail are left out from then on; ``failures`` says why.

    Args:
        seconds: stop before the next item after this time, None for no limit.
    """

    def __init__(
        self,
        editors: Sequence[Editor],
        manner: Manner,
        on_record: Callable[[Key | Item], None],
        seconds: float | None = None,
    ) -> None:
        self._editors = list(editors)
        self._manner = manner
        self._on_record = on_record
        self._until = None if seconds is None else time.monotonic() + seconds
        self.failures: dict[str, str] = {}

    async def run(self, items: Sequence[ReplayItem], on_item: Callable[[], None]) -> None:
        """``on_item`` is called after each item."""
        for item in items:
            if not self._editors or (self._until is not None and time.monotonic() > self._until):
                return
            order = list(self._editors)
            # Whoever comes second finds a warmer machine: no system does always.
            random.Random(f"{self._manner.seed} {item.index} order").shuffle(order)
            for editor in order:
                if len(order) > 1:
                    await asyncio.sleep(PAUSE_S)
                try:
                    self._on_record(await Typist(editor, item, self._manner, self._on_record).run())
                except (PeerFailed, OSError, RuntimeError) as error:
                    self.failures[editor.name] = str(error) or type(error).__name__
                    self._editors.remove(editor)
            on_item()
