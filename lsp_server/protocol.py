"""Everything the server says beyond LSP 3.18.

``draftline/status`` (notification, server to client)
    Sent when the engine's state changes, and for each completion request that got no suggestion.
    Parameters: see ``StatusParams``.

``draftline.server.accepted`` (command; arguments: the item's id)
    Set as ``command`` of each item; clients run it after the user accepted the whole item.

``draftline.server.restart`` (command; no arguments)
    Starts the engine again with the present settings, e.g. after a model was fetched.

Commands carry the prefix ``draftline.server.`` because vscode-languageclient registers the commands of
a server in the editor, where the extension's own names must stay free.
"""

from __future__ import annotations

from dataclasses import dataclass

STATUS = "draftline/status"
ACCEPTED = "draftline.server.accepted"
RESTART = "draftline.server.restart"


@dataclass(frozen=True)
class StatusParams:
    """Parameters of ``draftline/status``.

    Attributes:
        state: starting, loading, ready, failed or stopped.
        message: words for the user, "" if there is nothing to say.
        reason: why the last request got no suggestion (completion/reasons.py), "" if it got one; in
            the state failed the error's code.
        fraction: 0 to 1 while loading, if known.
        next_step: in the state failed, what the user can do.
        uri: the document of the request that ``reason`` is about, "" for the engine's own changes.
    """

    state: str
    message: str = ""
    reason: str = ""
    fraction: float | None = None
    next_step: str = ""
    uri: str = ""

    def to_json(self) -> dict[str, object]:
        """As sent."""
        params: dict[str, object] = {"state": self.state, "message": self.message, "reason": self.reason}
        if self.fraction is not None:
            params["fraction"] = self.fraction
        if self.next_step:
            params["nextStep"] = self.next_step
        if self.uri:
            params["uri"] = self.uri
        return params
