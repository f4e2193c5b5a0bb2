"""Ending with the client's process (LSP 3.18, ``InitializeParams.processId``)."""

from __future__ import annotations

import asyncio
import logging

_log = logging.getLogger(__name__)

INTERVAL_SECONDS = 2.0


async def until_gone(process_id: int) -> None:
    """Return when the process has ended.

    Never returns for a process that is not visible from the start: a client in another container
    has a process id that means nothing here, and the end of the connection tells enough.
    """
    import psutil

    try:
        process = psutil.Process(process_id)
    except psutil.Error:
        _log.info("the client's process %d is not visible from here", process_id)
        await asyncio.Event().wait()
        return
    while _alive(process):
        await asyncio.sleep(INTERVAL_SECONDS)


def _alive(process: object) -> bool:
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        # is_running compares start times, so a process id that was given away again is noticed.
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
