"""Errors a user can meet. Each names its cause and the next step."""

from __future__ import annotations


class DraftlineError(Exception):
    """Base of all expected failures.

    Attributes:
        code: stable machine-readable reason, e.g. ``no-network``; shown in ``draftline/status``.
        next_step: one sentence telling the user what to do about it.
    """

    code = "error"

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class UnknownModel(DraftlineError):
    """The name is in no catalog and is no path."""

    code = "unknown-model"


class ModelNotFetched(DraftlineError):
    """The weights are not on this disk and downloading was not allowed."""

    code = "model-not-fetched"


class NoNetwork(DraftlineError):
    """No source could be reached."""

    code = "no-network"


class DiskFull(DraftlineError):
    """Not enough room for the download or the converted form."""

    code = "disk-full"


class HomeNotWritable(DraftlineError):
    """The directory for weights cannot be written."""

    code = "home-not-writable"


class ChecksumMismatch(DraftlineError):
    """The bytes are not the ones the catalog names."""

    code = "checksum-mismatch"


class CorruptFile(DraftlineError):
    """A file is truncated or not in the format its name claims."""

    code = "corrupt-file"


class UnsupportedArchitecture(DraftlineError):
    """The model cannot be run here."""

    code = "unsupported-architecture"


class VocabularyMismatch(DraftlineError):
    """The draft model has other tokens than the model it drafts for."""

    code = "vocabulary-mismatch"


class UnsupportedNumerics(DraftlineError):
    """The numerics cannot be run on this device."""

    code = "unsupported-numerics"


class NotEnoughMemory(DraftlineError):
    """The model or its caches do not fit into memory."""

    code = "not-enough-memory"


class QueueFull(DraftlineError):
    """More requests wait than the engine accepts."""

    code = "queue-full"


class PromptTooLong(DraftlineError):
    """Prompt plus answer exceed the context window."""

    code = "prompt-too-long"


class EngineStopped(DraftlineError):
    """The engine was closed or failed to start."""

    code = "engine-stopped"


class InvalidRequest(DraftlineError):
    """A field of a request is out of its range."""

    code = "invalid-request"


class EngineLost(DraftlineError):
    """The process of a shared engine ended or cannot be reached."""

    code = "engine-lost"


def error_of(code: str, message: str, next_step: str = "") -> DraftlineError:
    """An error that came from another process: of the class that has its code, if there is one."""
    for kind in DraftlineError.__subclasses__():
        if kind.code == code:
            return kind(message, next_step)
    error = DraftlineError(message, next_step)
    error.code = code
    return error
