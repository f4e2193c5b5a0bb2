"""llama-server as a decoder: prompts as token ids, greedy, one server for each kind of speculation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.peers.base import PAUSE_S, Decoded, Decoder, PeerFailed, Prompt, Usage
from bench.peers.llama_server import NO_SPECULATION, LlamaServer

PLAIN = "plain"
MODES = (PLAIN, "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")

# Kinds that draft from what they saw in earlier requests: ngram-mod has one table for all of them, and
# the others never clear theirs (common/speculative.cpp). A prompt that comes again would be drafted from
# its own answer, so such a server decodes once and is started anew.
REMEMBERING = frozenset({"ngram-mod", "ngram-cache", "ngram-map-k", "ngram-map-k4v"})

_SILENCE_S = 600.0  # longest wait for the first token of a long prompt


class LlamaDecoder:
    """Implements ``Decoder``. Servers start when their mode is first used; one decodes at a time.

    Speculation is llama.cpp's own: a draft is kept as far as it is what the model itself picks. Its logits
    come from batches of other sizes than without speculation, so that near ties may fall differently.
    """

    def __init__(
        self,
        name: str,
        numerics: str,
        server_for: Callable[[str], LlamaServer],
        modes: tuple[str, ...] = MODES,
    ) -> None:
        """``server_for`` makes a server for a value of ``--spec-type``; modes are these, and "plain"."""
        self._name, self._numerics = name, numerics
        self._servers = {mode: server_for(NO_SPECULATION if mode == PLAIN else mode) for mode in modes}
        self._used: set[str] = set()
        self._cut: set[str] = set()
        self._last, self._last_end = "", 0.0

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    @property
    def modes(self) -> tuple[str, ...]:
        """The one without speculation first."""
        return tuple(self._servers)

    def start(self) -> None:
        """Start the server without speculation.

        Raises:
            PeerFailed: it does not start, or is an attached one that speculates.
        """
        plain = self._servers[PLAIN]
        known = plain.known_speculations()
        # An older program lacks some kinds; what it has is compared.
        self._servers = {mode: s for mode, s in self._servers.items() if mode == PLAIN or mode in known}
        plain.start()
        if plain.describe()["speculates"]:
            raise PeerFailed(
                f"{self._name} runs with --spec-type, so there is no plain decoding to compare with;"
                " start it without, or name the program in place of the address"
            )

    def describe(self) -> dict[str, Any]:
        """The server without speculation, and how those of the other modes differ from it."""
        modes = {
            mode: {
                "parameters": server.speculation_parameters(),
                "started_for_each_prompt": mode in REMEMBERING,
            }
            for mode, server in self._servers.items()
        }
        settings = {"temperature": 0, "top_k": 1, "cache_prompt": False}
        facts = self._servers[PLAIN].describe()
        numerics = self._numerics or facts.get("model_type", "")
        return {**facts, "numerics": numerics, "settings": settings, "modes": modes}

    def decode(
        self,
        prompt: Prompt,
        mode: str,
        max_tokens: int,
        stop_ids: frozenset[int],
        stops: tuple[str, ...] = (),
    ) -> Decoded:
        """Continue a prompt.

        The server ends at the end tokens that it knows. The other ``stop_ids`` are seen here in the
        stream: the request is cancelled then, and counts and times are those the server gave with that
        very token, so nothing after it counts. ``stops`` are the server's affair.

        Raises:
            PeerFailed: it does not answer.
        """
        server = self._ready(mode)
        body = {
            "prompt": list(prompt.ids),
            "n_predict": max_tokens,
            "temperature": 0,
            "top_k": 1,
            "cache_prompt": False,
            "stop": list(stops),
            "stream": True,
            "return_tokens": True,
            "timings_per_token": True,
        }
        answer = _Answer(stop_ids)
        began = time.perf_counter()
        events = server.exchange("/completion", body, _SILENCE_S).events()
        try:
            for event in events:
                if answer.add(event, time.perf_counter() - began):
                    self._cut.add(mode)
                    break
        finally:
            events.close()
            self._last, self._last_end = mode, time.monotonic()
            self._used.add(mode)
        return answer.decoded(len(prompt.ids), speculates=mode != PLAIN)

    def usage(self) -> Usage:
        """Of the server without speculation, the one that users have."""
        return self._servers[PLAIN].usage()

    def stop(self) -> None:
        """End all servers. Idempotent."""
        for server in self._servers.values():
            server.stop()
        self._used.clear()
        self._cut.clear()

    def _ready(self, mode: str) -> LlamaServer:
        server = self._servers.get(mode)
        if server is None:
            raise ValueError(f"{mode!r} is no mode of {self._name}")
        if mode in REMEMBERING and mode in self._used:
            server.stop()
            self._cut.discard(mode)
        server.start()
        if mode in self._cut:
            server.wait_idle()
            self._cut.discard(mode)
        if self._last not in ("", mode):
            time.sleep(max(PAUSE_S - (time.monotonic() - self._last_end), 0.0))
        return server


_: type[Decoder] = LlamaDecoder


class _Answer:
    """What a stream of /completion has said so far."""

    def __init__(self, stop_ids: frozenset[int]) -> None:
        self._stop_ids = stop_ids
        self._text: list[str] = []
        self._ids: list[int] = []
        self._ends: set[float] = set()
        self._first_s: float | None = None
        self._last: dict[str, Any] = {}
        self._reason = ""

    def add(self, event: dict[str, Any], seconds: float) -> bool:
        """Take one event; True if it brought one of the stop ids."""
        if "timings" not in event:
            raise PeerFailed(f"llama-server sent no timings: {str(event)[:200]}")
        ids = event.get("tokens", [])
        if ids and self._first_s is None:
            self._first_s = seconds
        self._last = event
        self._ids += ids
        if ids:
            # The clock stands still within one forward, so its values count them.
            self._ends.add(event["timings"]["predicted_ms"])
        if not self._stop_ids.isdisjoint(ids):
            self._reason = "stop-token"
            return True
        self._text.append(event.get("content", ""))
        if event.get("stop"):
            self._reason = str(event.get("stop_type", ""))
        return False

    def decoded(self, prompt_tokens: int, speculates: bool) -> Decoded:
        """The whole."""
        if self._first_s is None:
            raise PeerFailed("llama-server ended its answer before the first token")
        timings = self._last["timings"]
        tokens = int(timings["predicted_n"])
        # A token that ends inside a character comes without an event of its own.
        complete = len(self._ids) == tokens
        return Decoded(
            text="".join(self._text),
            token_ids=tuple(self._ids) if complete else (),
            tokens=tokens,
            prompt_tokens=prompt_tokens,
            cached_tokens=int(timings.get("cache_n", 0)),
            prompt_ms=float(timings["prompt_ms"]),
            first_ms=self._first_s * 1000,
            decode_ms=float(timings["predicted_ms"]),
            drafted=int(timings.get("draft_n", 0)) if speculates else 0,
            accepted=int(timings.get("draft_n_accepted", 0)) if speculates else 0,
            forwards=len(self._ends) - 1 if complete else None,
            finish_reason=self._reason,
        )
