"""Why there is no suggestion."""

from __future__ import annotations

from enum import Enum


class Reason(str, Enum):
    """Reason codes, sent as ``reason`` of the ``draftline/status`` notification.

    A suggestion dropped by a filter has the reason ``filtered:<name>``; refusals of the engine bring
    their own codes (see inference/errors.py), e.g. ``queue-full``.
    """

    LOADING = "loading"
    FAILED = "failed"
    STOPPED = "stopped"
    DISABLED = "disabled"
    EXCLUDED = "excluded"
    SECRET = "secret"
    UNKNOWN_DOCUMENT = "unknown-document"
    TOO_LARGE = "too-large"
    NO_FIM = "no-fim"
    EMPTY = "empty"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    STALE = "stale"
    ERROR = "error"


MESSAGES: dict[Reason, str] = {
    Reason.LOADING: "The model is still loading.",
    Reason.FAILED: "The model could not be loaded.",
    Reason.STOPPED: "The engine is stopped.",
    Reason.DISABLED: "Suggestions are switched off for this language or folder, or altogether.",
    Reason.EXCLUDED: "This file is excluded: it may hold secrets, or a .draftlineignore names it.",
    Reason.SECRET: "The cursor is in a key, token or password, which is not read.",
    Reason.UNKNOWN_DOCUMENT: "The document is not open.",
    Reason.TOO_LARGE: "The document is too large.",
    Reason.NO_FIM: "The model's vocabulary has no fill-in-the-middle tokens; choose a code model.",
    Reason.EMPTY: "The model suggests nothing here.",
    Reason.CANCELLED: "The request was cancelled.",
    Reason.SUPERSEDED: "A newer request or edit of the same document took its place.",
    Reason.STALE: "The document changed before the answer was ready.",
    Reason.ERROR: "An internal error; the server's log has the details.",
}


class NoSuggestion(Exception):
    """The answer is ``[]``; ``reason`` is a `Reason`, ``filtered:<name>`` or a code of the engine."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message


def filtered(name: str) -> str:
    """Reason code of a suggestion that the filter ``name`` dropped."""
    return f"filtered:{name}"


def message_for(reason: str) -> str:
    """Words for a reason code."""
    if reason.startswith("filtered:"):
        return f"The suggestion was dropped by the filter {reason.partition(':')[2]}."
    try:
        return MESSAGES[Reason(reason)]
    except ValueError:
        return ""
