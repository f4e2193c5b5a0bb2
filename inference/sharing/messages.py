"""What a server and an engine process say to each other: one JSON object a message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, get_args

from cattrs.preconf.json import make_converter

from inference.api import EngineStatus, GenerationRequest, GenerationResult

# Part of the name of every engine: a server never meets a process that speaks otherwise.
PROTOCOL = 1


class BadMessage(ValueError):
    """The other side said something that is no message."""


@dataclass(frozen=True)
class Hello:
    """The first message of a client.

    Attributes:
        key: of the engine that is wanted; see `place.key_of`.
        pid: of the client.
        idle_seconds: how long the engine stays when this client was the last to leave.
        visit: only look: the engine answers with `Welcome` and hangs up.
    """

    key: str
    pid: int
    idle_seconds: float = 60.0
    visit: bool = False


@dataclass(frozen=True)
class Welcome:
    """The answer to `Hello`.

    Attributes:
        pid: of the engine process.
        clients: attached now, without visitors.
        model: what it runs, for people.
        state: of the engine.
        requests: of all clients, that have no answer yet.
    """

    pid: int
    clients: int
    model: str
    state: str
    requests: int = 0


@dataclass(frozen=True)
class State:
    """The engine's status; ``codec`` says how to make its tokenizer, None until it is ready."""

    status: EngineStatus
    context: int
    codec: dict[str, Any] | None = None


@dataclass(frozen=True)
class Submit:
    """A request; ``id`` is the client's own count."""

    id: int
    request: GenerationRequest


@dataclass(frozen=True)
class Cancel:
    """Stop a request."""

    id: int


@dataclass(frozen=True)
class Said:
    """A chunk of an answer."""

    id: int
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Done:
    """The end of an answer."""

    id: int
    result: GenerationResult


@dataclass(frozen=True)
class Refused:
    """There is no answer, because of an error."""

    id: int
    code: str
    message: str
    next_step: str = ""


@dataclass(frozen=True)
class Learn:
    """Let guesses draw on a document's text."""

    document: str
    text: str


@dataclass(frozen=True)
class Forget:
    """A document was closed."""

    document: str


@dataclass(frozen=True)
class Leave:
    """The client goes; ``end``: nobody will come back for this engine, it need not wait."""

    end: bool = False


@dataclass(frozen=True)
class Ping:
    """Is somebody there?"""


@dataclass(frozen=True)
class Pong:
    """Yes."""


Message = (
    Hello | Welcome | State | Submit | Cancel | Said | Done | Refused | Learn | Forget | Leave | Ping | Pong
)

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Message)}
_converter = make_converter(detailed_validation=False)


def encode(message: Message) -> bytes:
    """As sent. ASCII, so that half of a surrogate pair, which editors may send, is no problem."""
    body = _converter.unstructure(message)
    return json.dumps([type(message).__name__, body], separators=(",", ":")).encode("ascii")


def decode(data: bytes) -> Message:
    """What was sent.

    Raises:
        BadMessage
    """
    try:
        name, body = json.loads(data)
        message: Message = _converter.structure(body, _KINDS[name])
    except Exception as error:  # cattrs raises what the constructors raise
        # Without its words, which may be the user's text: this ends in a log.
        raise BadMessage(type(error).__name__) from error
    return message
