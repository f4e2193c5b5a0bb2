"""Why there is no edit, and what is wrong with one that should not be applied unasked."""

from __future__ import annotations

from enum import Enum


class NoEdit(str, Enum):
    """Codes sent as ``reason`` of an answer to ``draftline/inlineEdit`` without an edit.

    Refusals of the engine bring their own codes (see inference/errors.py), e.g. ``queue-full``.
    """

    NO_INSTRUCTION = "no-instruction"
    EMPTY_SELECTION = "empty-selection"
    TOO_LONG = "selection-too-long"
    UNKNOWN_DOCUMENT = "unknown-document"
    EXCLUDED = "excluded"
    TOO_LARGE = "too-large"
    READ_ONLY = "read-only"
    SECRET = "secret"
    STALE = "stale"
    UNCHANGED = "unchanged"
    NO_CODE = "no-code"
    OUTSIDE = "outside-selection"
    CANCELLED = "cancelled"
    LOADING = "loading"
    FAILED = "failed"
    STOPPED = "stopped"
    DISABLED = "disabled"
    ERROR = "error"


MESSAGES: dict[NoEdit, str] = {
    NoEdit.NO_INSTRUCTION: "Say what is to be changed.",
    NoEdit.EMPTY_SELECTION: "The selection holds nothing to change: select whole lines of code.",
    NoEdit.TOO_LONG: "The selection does not fit into the context.",
    NoEdit.UNKNOWN_DOCUMENT: "The document is not open.",
    NoEdit.EXCLUDED: "This file is excluded: it may hold secrets, or an ignore file names it.",
    NoEdit.TOO_LARGE: "The document is too large.",
    NoEdit.READ_ONLY: "The file is read-only.",
    NoEdit.SECRET: "The edit would change a line that holds a password, key or token, which the model never"
    " sees: select the code around it.",
    NoEdit.STALE: "The document changed meanwhile; ask again.",
    NoEdit.UNCHANGED: "The model left the code as it is; say it in other words, or select less.",
    NoEdit.NO_CODE: "The model answered without code; say it in other words.",
    NoEdit.OUTSIDE: "The model changed text outside the selection; select whole lines.",
    NoEdit.CANCELLED: "The edit was cancelled; nothing was changed.",
    NoEdit.LOADING: "The model is still loading.",
    NoEdit.FAILED: "The model could not be loaded.",
    NoEdit.STOPPED: "The engine is stopped.",
    NoEdit.DISABLED: "Draftline is switched off for this language or altogether.",
    NoEdit.ERROR: "An internal error; the server's log has the details.",
}


class Flag(str, Enum):
    """What makes an edit doubtful: it is shown, but not applied without the user's word."""

    TRUNCATED = "truncated"
    DELETES_MOST = "deletes-most"
    PARSE_ERROR = "parse-error"
    REPEATS = "repeats"
    BEYOND = "beyond-selection"
    LACKS_IMPORT = "lacks-import"


FLAG_MESSAGES: dict[Flag, str] = {
    Flag.TRUNCATED: "the answer ran into the length limit",
    Flag.DELETES_MOST: "most of the selection would be deleted",
    Flag.PARSE_ERROR: "the code would no longer parse",
    Flag.REPEATS: "the answer repeats itself",
    Flag.BEYOND: "the answer writes what is around or beside the selection once more; select all of it",
    Flag.LACKS_IMPORT: "it needs an import that the file lacks and that cannot stand in the selection",
}


class NoEditError(Exception):
    """There is no edit; ``reason`` is a `NoEdit` or a code of the engine."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(reason)
        self.reason = str(getattr(reason, "value", reason))
        self.message = message or (MESSAGES[NoEdit(reason)] if reason in set(NoEdit) else "")
