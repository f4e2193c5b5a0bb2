"""What a bench needs of a system under test: as an editor sees it, and as a decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bench.records import Source

# OpenMP threads spin for a while after their work (libgomp some milliseconds, libomp 200 ms, unless
# OMP_WAIT_POLICY or KMP_BLOCKTIME say otherwise). Until those of one system sleep, they take the cores from
# the next system.
PAUSE_S = 0.3


class PeerFailed(Exception):
    """A system cannot be started or does not answer; the message says what to do."""


@dataclass(frozen=True)
class Usage:
    """Of all processes of a system. CPU seconds count user and system time since they started."""

    cpu_seconds: float | None
    private_bytes: int | None
    mapped_bytes: int | None


@dataclass(frozen=True)
class Reply:
    """What an editor would show.

    Attributes:
        outcome: "shown"; "nothing" (answered without a suggestion); "superseded" (a newer request took
            its place); "timeout"; "error".
        text: to insert, "" if nothing; ``\\n`` line ends.
        start, end: columns of the cursor's line that it replaces, in characters.
        ms: from the call of ``ask`` to the answer.
        reason: the system's own words for no suggestion.
    """

    outcome: Literal["shown", "nothing", "superseded", "timeout", "error"]
    text: str
    start: int
    end: int
    ms: float | None
    source: Source
    reason: str = ""
    first_ms: float | None = None
    model_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    tokens: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    forwards: int | None = None


class Editor(Protocol):
    """A completion system as an editor's user meets it. Lines and columns from 0, in characters.

    Used from one asyncio loop. ``ask`` may be called again before an earlier call has returned; the
    earlier one then ends as "superseded" as soon as the system lets it.
    """

    @property
    def name(self) -> str:
        """For tables."""

    async def start(self) -> None:
        """Start and wait until it can answer.

        Raises:
            PeerFailed
        """

    def describe(self) -> dict[str, Any]:
        """Version, build flags, model file and settings; JSON values."""

    async def open(self, path: str, language: str, text: str) -> None:
        """Show a document; ``path`` is relative and names no file on disk. One document at a time."""

    async def change(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range (line, column) of the open document."""

    async def ask(self, line: int, column: int) -> Reply:
        """An automatic request at the cursor. Does not raise for what the system does wrong."""

    async def settle(self) -> None:
        """Wait until it does nothing on its own any more, e.g. has asked for what follows a suggestion."""

    async def accepted(self, reply: Reply, whole: bool) -> None:
        """The user took a suggestion; its text has been inserted by ``change``."""

    async def close(self) -> None:
        """Close the document and drop everything learned from it."""

    async def usage(self) -> Usage:
        """Now."""

    async def stop(self) -> None:
        """End all processes that this started. Idempotent."""


@dataclass(frozen=True)
class Decoded:
    """A raw continuation of a prompt.

    Attributes:
        token_ids: () if the system does not tell.
        tokens: decoded, the end token included if the system counts it.
        prompt_ms: reading the prompt; first_ms: until the first token; decode_ms: first to last token.
        steps: (match, drafted, accepted, rows, ms) for each decode forward, () if the system does not tell.
    """

    text: str
    token_ids: tuple[int, ...]
    tokens: int
    prompt_tokens: int
    cached_tokens: int
    prompt_ms: float
    first_ms: float
    decode_ms: float
    drafted: int | None
    accepted: int | None
    forwards: int | None
    finish_reason: str = ""
    steps: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A prompt in both forms: token ids where the system shares the vocabulary, text for the others."""

    ids: tuple[int, ...]
    text: str


class Decoder(Protocol):
    """A system that continues prompts, greedily, from nothing cached.

    ``modes`` are the ways to decode that are compared, "plain" (no speculation) first.
    """

    @property
    def name(self) -> str: ...

    @property
    def modes(self) -> tuple[str, ...]: ...

    def start(self) -> None:
        """Start and load.

        Raises:
            PeerFailed
        """

    def describe(self) -> dict[str, Any]:
        """Version, build flags, model file and settings; JSON values."""

    def decode(
        self,
        prompt: Prompt,
        mode: str,
        max_tokens: int,
        stop_ids: frozenset[int],
        stops: tuple[str, ...] = (),
    ) -> Decoded:
        """Continue a prompt to an end token, a stop or ``max_tokens``.

        Raises:
            PeerFailed: it does not answer.
        """

    def usage(self) -> Usage: ...

    def stop(self) -> None:
        """End all processes that this started, free the model. Idempotent."""
