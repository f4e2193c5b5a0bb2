"""Any server with OpenAI's ``/v1/completions``, as a decoder."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from bench.peers.base import Decoded, Decoder, PeerFailed, Prompt, Usage
from bench.peers.exchange import Exchange

PLAIN = "plain"
KEY_VARIABLE = "OPENAI_API_KEY"

_SILENCE_S = 600.0  # longest wait for the first token of a long prompt
_MAX_STOPS = 4  # what the API takes


@dataclass(frozen=True)
class Completion:
    """A finished answer. Counts are None where the server does not tell; times count from the request."""

    text: str
    finish_reason: str
    first_ms: float
    ms: float
    chunks: int
    prompt_tokens: int | None
    cached_tokens: int | None
    tokens: int | None


class CompletionsApi:
    """An address and a model. The key of $OPENAI_API_KEY is sent if it is set, and kept nowhere."""

    def __init__(self, url: str, model: str = "") -> None:
        """``url`` may end in ``/v1``; without ``model`` the first one that the server lists is used."""
        self._base = url.rstrip("/").removesuffix("/v1") + "/v1"
        self._model, self._asked_model = model, model

    def start(self) -> None:
        """Look whether it answers, and for its model if none was named.

        Raises:
            PeerFailed: it cannot be reached, or lists no model.
        """
        if self._asked_model:
            return
        listed = Exchange(f"{self._base}/models", headers=_headers()).json().get("data")
        if not isinstance(listed, list) or not listed or "id" not in listed[0]:
            raise PeerFailed(f"{self._base}/models lists no model: name one behind the address")
        self._model = str(listed[0]["id"])

    def describe(self) -> dict[str, Any]:
        """What is known of a server that somebody else started."""
        # Some servers name a model by the path of its file, which is nobody's business.
        return {"model": self._model.rpartition("/")[2], "started": "by the user, with settings unknown here"}

    def request(
        self, prompt: str, max_tokens: int, stops: tuple[str, ...] = (), more: dict[str, Any] | None = None
    ) -> Exchange:
        """A greedy, streamed completion that is still to be read."""
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **(more or {}),
        }
        if stops:
            body["stop"] = list(stops[:_MAX_STOPS])
        return Exchange(f"{self._base}/completions", body, _SILENCE_S, _headers())


def read_completion(exchange: Exchange) -> Completion:
    """Send a request and read its whole answer.

    Raises:
        PeerFailed: it does not answer, or says nothing that looks like a completion.
        Cancelled
    """
    began = time.perf_counter()
    texts: list[str] = []
    finish, ms = "", 0.0
    first_ms: float | None = None
    usage: dict[str, Any] = {}
    for event in exchange.events():
        if "error" in event:
            raise PeerFailed(f"the server broke off: {event['error']}")
        usage = event.get("usage") or usage
        for choice in event.get("choices") or []:
            text = str(choice.get("text") or "")
            finish = str(choice.get("finish_reason") or finish)
            if text:
                ms = (time.perf_counter() - began) * 1000
                first_ms = ms if first_ms is None else first_ms
                texts.append(text)
    if not texts and not finish:
        raise PeerFailed("the server's answer has neither text nor a finish_reason")
    ms = ms or (time.perf_counter() - began) * 1000
    details = usage.get("prompt_tokens_details") or {}
    return Completion(
        text="".join(texts),
        finish_reason=finish,
        first_ms=ms if first_ms is None else first_ms,
        ms=ms,
        chunks=len(texts),
        prompt_tokens=usage.get("prompt_tokens"),
        cached_tokens=details.get("cached_tokens"),
        tokens=usage.get("completion_tokens"),
    )


class OpenAiDecoder:
    """Implements ``Decoder`` with text prompts.

    What the API does not tell is filled in: without usage, a chunk of the stream counts as a token and the
    prompt as long as its ids. The API cannot forbid the server to reuse what it has cached, and it ends
    at the server's own end tokens, not at ``stop_ids``.
    """

    modes = (PLAIN,)

    def __init__(self, name: str, api: CompletionsApi) -> None:
        self._name, self._api = name, api

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    def start(self) -> None:
        """Look whether it answers.

        Raises:
            PeerFailed
        """
        self._api.start()

    def describe(self) -> dict[str, Any]:
        """The server, and what is asked of it."""
        return {**self._api.describe(), "settings": {"temperature": 0, "prompt": "text"}}

    def decode(
        self,
        prompt: Prompt,
        mode: str,
        max_tokens: int,
        stop_ids: frozenset[int],
        stops: tuple[str, ...] = (),
    ) -> Decoded:
        """Continue a prompt to the server's own end tokens, the first four ``stops`` or ``max_tokens``.

        Raises:
            PeerFailed: it does not answer.
        """
        answer = read_completion(self._api.request(prompt.text, max_tokens, stops))
        return Decoded(
            text=answer.text,
            token_ids=(),
            tokens=answer.chunks if answer.tokens is None else answer.tokens,
            prompt_tokens=len(prompt.ids) if answer.prompt_tokens is None else answer.prompt_tokens,
            cached_tokens=answer.cached_tokens or 0,
            prompt_ms=answer.first_ms,
            first_ms=answer.first_ms,
            decode_ms=answer.ms - answer.first_ms,
            drafted=None,
            accepted=None,
            forwards=None,
            finish_reason=answer.finish_reason,
        )

    def usage(self) -> Usage:
        """Unknown: the server is not ours, and may be on another machine."""
        return Usage(None, None, None)

    def stop(self) -> None:
        """Nothing was started."""


_: type[Decoder] = OpenAiDecoder


def _headers() -> dict[str, str]:
    key = os.environ.get(KEY_VARIABLE, "")
    return {"Authorization": f"Bearer {key}"} if key else {}
