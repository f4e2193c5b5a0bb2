"""What the client is told about the engine and about requests without a suggestion."""

from __future__ import annotations

from collections.abc import Callable

from inference.api import EngineState, EngineStatus
from lsp_server.completion.reasons import message_for
from lsp_server.protocol import StatusParams


class StatusReporter:
    """Sends ``draftline/status``. Used from the event loop only."""

    def __init__(self, send: Callable[[StatusParams], None]) -> None:
        self._send = send
        self._engine = EngineStatus(EngineState.STARTING)
        self._reason = ""

    @property
    def engine(self) -> EngineStatus:
        """The engine's last known status."""
        return self._engine

    def engine_changed(self, status: EngineStatus) -> None:
        """Report the engine's new status."""
        self._engine = status
        self._reason = ""
        self._send(
            StatusParams(
                state=status.state.value,
                message=status.message,
                reason=status.code,
                fraction=status.fraction,
                next_step=status.next_step,
            )
        )

    def answered(self, uri: str, reason: str = "", message: str = "") -> None:
        """Report the outcome of a request: ``reason`` "" for a suggestion.

        Every answer without a suggestion is reported; a suggestion only if it ends such a phase, so
        that an editor can take the reason off its status bar.
        """
        if not reason and not self._reason:
            return
        self._reason = reason
        words = message or (message_for(reason) if reason else "")
        self._send(
            StatusParams(
                state=self._engine.state.value,
                message=words,
                reason=reason,
                fraction=self._engine.fraction,
                next_step=self._engine.next_step,
                uri=uri,
            )
        )
