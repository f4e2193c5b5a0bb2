"""The client's progress bar while a model loads (LSP 3.18, "Server Initiated Progress")."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from lsprotocol import types

from inference.api import EngineState, EngineStatus

if TYPE_CHECKING:
    from lsp_server.rpc import DraftlineProtocol

_log = logging.getLogger(__name__)


class LoadProgress:
    """Shows ``EngineStatus`` as work-done progress. Used from the event loop only.

    pygls' own helper loses its token when the client is slow to confirm it, so the three notifications
    are sent from here.
    """

    def __init__(self, protocol: DraftlineProtocol) -> None:
        self._protocol = protocol
        self._enabled = False
        self._count = 0
        self._token: str | None = None
        self._begun = False
        self._last: EngineStatus | None = None
        self._task: asyncio.Task[None] | None = None

    def enable(self, capabilities: types.ClientCapabilities) -> None:
        """Use the progress bar if the client has one."""
        self._enabled = bool(capabilities.window and capabilities.window.work_done_progress)

    def update(self, status: EngineStatus) -> None:
        """Follow the engine's status."""
        if not self._enabled:
            return
        self._last = status
        if status.state in (EngineState.STARTING, EngineState.LOADING):
            if self._token is None:
                self._count += 1
                self._token = f"draftline-load-{self._count}"
                self._task = asyncio.ensure_future(self._create(self._token))
            elif self._begun:
                self._notify(
                    types.WorkDoneProgressReport(message=status.message, percentage=_percent(status))
                )
        elif self._token is not None:
            if self._begun:
                self._notify(types.WorkDoneProgressEnd(message=status.message))
            self._token = None
            self._begun = False

    async def _create(self, token: str) -> None:
        try:
            await self._protocol.send_request_async(
                types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token=token)
            )
        except Exception as error:
            _log.warning("the client refused a progress bar: %s", error)
            return
        # The load may be over, or another one begun, by the time the client has confirmed.
        if token == self._token and self._last is not None:
            self._begun = True
            self._notify(
                types.WorkDoneProgressBegin(
                    title="Draftline: loading the model",
                    cancellable=False,
                    message=self._last.message,
                    percentage=_percent(self._last) or 0,
                )
            )

    def _notify(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        assert self._token is not None
        self._protocol.notify(types.PROGRESS, types.ProgressParams(token=self._token, value=value))


def _percent(status: EngineStatus) -> int | None:
    return None if status.fraction is None else max(0, min(100, round(100 * status.fraction)))
