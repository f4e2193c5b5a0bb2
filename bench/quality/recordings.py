"""Recorded answers: what stop rules and filters can be tried on without the model.

A recording is an answer without stop rules, token by token. Decoding is exact: neither drafts nor stop rules
change a token, they only decide where the text ends. So replaying the pieces through other rules gives the
text that a run with those rules would have given, in microseconds instead of seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from inference.api import FinishReason, GenerationRequest, GenerationResult, StopRules, Timings
from inference.errors import DraftlineError
from inference.generation import Outcome
from inference.runtime import Runtime
from inference.stops import StopChecker
from inference.tokenizer import StreamDecoder, Tokenizer


class StaleRecording(DraftlineError):
    """A recording answers another prompt than the one it is to be replayed for."""

    code = "stale-recording"


@dataclass(frozen=True)
class Recording:
    """An answer up to an end token or the length limit.

    Attributes:
        set, item: of the task.
        prompt_sha256: of the prompt's token ids and the characters to heal.
        token_ids: all that the model chose, healed ones and the end token included.
        pieces: for each token the text that became complete with it and stands behind the cursor; one more
            for what was left of an incomplete character at the end.
        reason: "stop-token", "length" or "context".
        max_new_tokens: the limit.
    """

    set: str
    item: str
    prompt_sha256: str
    token_ids: tuple[int, ...]
    pieces: tuple[str, ...]
    reason: str
    max_new_tokens: int

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)


def record(runtime: Runtime, request: GenerationRequest, set_name: str = "", item: str = "") -> Recording:
    """Answer a request without its stop rules, but for the end tokens."""
    outcome = runtime.run(without_stops(request), lambda chunk: None, lambda: None)
    return recorded(runtime.tokenizer, request, outcome, set_name, item)


def recorded(
    tokenizer: Tokenizer, request: GenerationRequest, outcome: Outcome, set_name: str = "", item: str = ""
) -> Recording:
    """What the engine did with a request without stop rules."""
    return Recording(
        set=set_name,
        item=item,
        prompt_sha256=prompt_sha256(request),
        token_ids=outcome.token_ids,
        pieces=_pieces(tokenizer, request, outcome.token_ids),
        reason=outcome.reason.value,
        max_new_tokens=request.max_new_tokens,
    )


def replay(recording: Recording, request: GenerationRequest) -> GenerationResult:
    """What the engine would have answered to ``request``, without times and counts.

    Raises:
        StaleRecording: its prompt or limit is not the recorded one.
    """
    if (
        recording.prompt_sha256 != prompt_sha256(request)
        or recording.max_new_tokens != request.max_new_tokens
    ):
        raise StaleRecording(
            f"The recording of {recording.set} {recording.item} answers another prompt.",
            "Record the answers anew: prompts, model or settings have changed since.",
        )
    checker = StopChecker(request.stops)
    reason, taken = None, 0
    while reason is None and taken < len(recording.token_ids):
        reason = checker.push(recording.pieces[taken])
        taken += 1
    if reason is None:
        # As in the decoding loop, which has ended by then.
        reason = FinishReason(recording.reason)
        checker.push(recording.pieces[-1])
        checker.finish()
    return GenerationResult(
        text=checker.text,
        token_ids=recording.token_ids[:taken],
        finish_reason=reason,
        prompt_tokens=len(request.prompt),
        cached_tokens=0,
        drafted=0,
        accepted=0,
        forwards=0,
        timings=Timings(),
    )


def without_stops(request: GenerationRequest) -> GenerationRequest:
    """The request with nothing but end tokens to end it."""
    return replace(request, stops=StopRules(token_ids=request.stops.token_ids))


def prompt_sha256(request: GenerationRequest) -> str:
    """A digest of all that decides which tokens answer a request."""
    parts = [list(request.prompt), request.heal, sorted(request.stops.token_ids), request.temperature]
    return hashlib.sha256(json.dumps([*parts, request.seed]).encode()).hexdigest()


def save(recordings: Iterable[Recording], path: Path) -> None:
    """Append as JSON lines, each at once. They hold the code that the model wrote."""
    with path.open("a", encoding="utf-8") as file:
        for recording in recordings:
            file.write(json.dumps(asdict(recording)) + "\n")
            file.flush()


def load(path: Path) -> Iterator[Recording]:
    """What `save` wrote; the last line of a run that was killed may be incomplete and is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                return
            fields = json.loads(line)
            fields["token_ids"], fields["pieces"] = tuple(fields["token_ids"]), tuple(fields["pieces"])
            yield Recording(**fields)


def _pieces(tokenizer: Tokenizer, request: GenerationRequest, token_ids: tuple[int, ...]) -> tuple[str, ...]:
    """The text of each token as the decoding loop feeds it to the stop rules, and the rest at the end."""
    stream, hidden = StreamDecoder(tokenizer), len(request.heal)
    ends = request.stops.token_ids
    pieces = []
    for piece in (*("" if token in ends else stream.push(token) for token in token_ids), stream.finish()):
        pieces.append(piece[hidden:])
        hidden -= len(piece) - len(pieces[-1])
    return tuple(pieces)
