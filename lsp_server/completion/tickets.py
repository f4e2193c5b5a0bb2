"""A request in flight, and waiting that ends when something newer takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Superseded(Exception):
    """Something newer than the request: the answer would come too late."""


class Ticket:
    """A request in flight.

    Attributes:
        arrived: time of the monotonic clock.
        first_line_ms: after so long whole lines will do; 0 for never.
    """

    def __init__(self, arrived: float, first_line_ms: float) -> None:
        self.arrived = arrived
        self.first_line_ms = first_line_ms
        self._superseded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def supersede(self) -> None:
        """A newer request has arrived, or the document was changed."""
        if not self._superseded.done():
            self._superseded.set_result(None)

    async def wait(self, news: asyncio.Future[None], seconds: float | None) -> None:
        """Wait for ``news``, which others may wait for too, at most ``seconds``.

        Raises:
            Superseded
        """
        waiting: set[asyncio.Future[Any]] = {news, self._superseded}
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        self._check()

    async def unless_superseded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do ``work``, which is cancelled if it does not get to its end.

        Raises:
            Superseded
        """
        task = asyncio.ensure_future(work)
        try:
            await self.wait(task, None)
        finally:
            task.cancel()

    def _check(self) -> None:
        if self._superseded.done():
            raise Superseded
