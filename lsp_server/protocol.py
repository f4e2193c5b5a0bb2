"""Everything the server says beyond LSP 3.18.

``draftline/status`` (notification, server to client)
    Sent when the engine's state changes, and for each completion request that got no suggestion.
    Parameters: see ``StatusParams``.

``draftline/trace`` (notification, server to client)
    What each completion request that was not cancelled cost, sent before its answer while the client wants
    a trace (the standard ``trace`` of ``initialize``, or ``$/setTrace``, is not "off"). Parameters: see
    ``TraceParams``.

``draftline/statistics`` (request, client to server; no parameters)
    How suggestions were used on this machine so far, as ``draftline doctor`` shows it: an object
    with ``counts`` (the names in statistics.py, ``COUNTS``), ``reasons`` (requests without a suggestion, by
    reason code), ``sources`` (suggestions by who made them, as ``source`` of the trace) and ``latencyMs``
    (``p50`` and ``p95`` of the last few hundred suggestions, null without any). Numbers only.

``draftline/grown`` (notification, server to client)
    The lines that the newest request of a document was answered with while the model still wrote have become
    more. Parameters: ``uri`` and ``version`` of the text. The whole answer is there for an automatic request
    at the same place. Sent to clients whose profile asks again (completion/clients.py).

``draftline/cursor`` (notification, client to server)
    The cursor rests where it was moved to, not typed to. Parameters: ``textDocument`` (``uri``) and
    ``position``. The server reads what a completion there will need; any request goes first. For clients that
    ask for completions only when something was typed.

``draftline.server.accepted`` (command; arguments: the item's id)
    Set as ``command`` of each item; clients run it after the user accepted the whole item.

``draftline.server.restart`` (command; no arguments)
    Starts the engine again with the present settings, e.g. after a model was fetched.

Commands carry the prefix ``draftline.server.`` because vscode-languageclient registers the commands of
a server in the editor, where the extension's own names must stay free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference.api import GenerationResult
from lsp_server.documents.text import Point

STATUS = "draftline/status"
TRACE = "draftline/trace"
STATISTICS = "draftline/statistics"
GROWN = "draftline/grown"
CURSOR = "draftline/cursor"
ACCEPTED = "draftline.server.accepted"
RESTART = "draftline.server.restart"


def cursor_of(params: Any) -> tuple[str, Point]:
    """URI and position in the parameters of ``draftline/cursor``.

    Raises:
        AttributeError, TypeError, ValueError: a field is missing or of another type.
    """
    line, character = params.position.line, params.position.character
    if not isinstance(line, int) or not isinstance(character, int) or line < 0 or character < 0:
        raise ValueError("no position")
    return str(params.textDocument.uri), Point(line, character)


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


@dataclass(frozen=True)
class TraceParams:
    """Parameters of ``draftline/trace``. Names no text of the document.

    Attributes:
        version: of the document when the request came.
        source: "model", "stream" (the answer to an earlier request, which the user has typed along), "cache"
            (a suggestion made before), "prefetch" (one that was made before anybody asked), or "none".
        reason: as in ``StatusParams``.
        result: what the engine did, None if it was not asked; its counts and milliseconds are sent.
    """

    uri: str
    version: int
    source: str
    reason: str
    result: GenerationResult | None = None

    def to_json(self) -> dict[str, object]:
        """As sent."""
        params: dict[str, object] = {
            "uri": self.uri,
            "version": self.version,
            "source": self.source,
            "reason": self.reason,
        }
        if self.result is not None:
            result, timings = self.result, self.result.timings
            params.update(
                promptTokens=result.prompt_tokens,
                cachedTokens=result.cached_tokens,
                tokens=len(result.token_ids),
                drafted=result.drafted,
                accepted=result.accepted,
                forwards=result.forwards,
                finishReason=result.finish_reason.value,
                ms={
                    "queue": round(timings.queue, 3),
                    "prompt": round(timings.prompt, 3),
                    "first": round(timings.first, 3),
                    "total": round(timings.total, 3),
                },
            )
        return params
