"""The requests of llama.vim to llama-server's ``/infill``, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.peers.base import PeerFailed
from bench.peers.vim_context import VimContext

PREDICT_MS = 1000
FIRST_PREDICT_MS = 250  # for the cursor's place; what follows a suggestion has the whole time
PROMPT_MS = 500
TOKENS = 128

_SAMPLING = {"top_k": 40, "top_p": 0.9, "samplers": ["top_k", "top_p", "infill"]}
# The same, and then the likeliest of the tokens that these leave.
_GREEDY = {**_SAMPLING, "samplers": ["top_k", "top_p", "infill", "min_p"], "min_p": 1.0}

_TIMINGS = ("prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "cache_n", "draft_n", "draft_n_accepted")
_FIELDS = ["content", "tokens_evaluated", "stop_type", *(f"timings/{name}" for name in _TIMINGS)]


def infill_request(context: VimContext, predict_ms: int, seed: int, first_line_only: bool) -> dict[str, Any]:
    """As the plugin sends it; ``input_extra`` is what it collects from other places.

    ``seed`` is an addition, for runs that can be repeated. ``first_line_only`` is the plugin's setting
    ``stop_strings``. More fields of the answer are asked for than the plugin shows.
    """
    return {
        "id_slot": 0,
        "input_prefix": context.prefix,
        "input_suffix": context.suffix,
        "input_extra": [],
        "prompt": context.middle,
        "n_predict": TOKENS,
        "stop": ["\n"] if first_line_only else [],
        "n_indent": context.indent,
        **_SAMPLING,
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": PROMPT_MS,
        "t_max_predict_ms": predict_ms,
        "seed": seed,
        "response_fields": _FIELDS,
    }


def without_chance(request: dict[str, Any]) -> dict[str, Any]:
    """The request with an answer that depends on neither chance nor what was asked before.

    The time limits stay: they end most answers, and without them the plugin's would run on.
    """
    return {**request, **_GREEDY, "cache_prompt": False}


@dataclass(frozen=True)
class InfillAnswer:
    """What an answer says; None where it does not tell."""

    content: str
    prompt_ms: float | None
    predicted_ms: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    tokens: int | None
    drafted: int
    accepted: int

    @classmethod
    def of(cls, data: dict[str, Any]) -> InfillAnswer:
        """Raises:
        PeerFailed: there is no content.
        """
        content = data.get("content")
        if not isinstance(content, str):
            raise PeerFailed(f"/infill answered without content: {str(data)[:200]}")
        timings = {name: data.get(f"timings/{name}") for name in _TIMINGS}
        return cls(
            content=content,
            prompt_ms=timings["prompt_ms"],
            predicted_ms=timings["predicted_ms"],
            prompt_tokens=data.get("tokens_evaluated"),
            cached_tokens=timings["cache_n"],
            tokens=timings["predicted_n"],
            drafted=timings["draft_n"] or 0,
            accepted=timings["draft_n_accepted"] or 0,
        )

    @property
    def model_ms(self) -> float | None:
        """The server's time for prompt and answer."""
        if self.prompt_ms is None or self.predicted_ms is None:
            return None
        return self.prompt_ms + self.predicted_ms
