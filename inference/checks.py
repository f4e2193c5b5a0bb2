"""What a configuration and a request must be, told before anything is loaded or computed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference.api import DRAFTS, KERNELS, KV_NUMERICS, NUMERICS, EngineConfig, GenerationRequest
from inference.errors import InvalidRequest, PromptTooLong
from inference.precision import Precision

if TYPE_CHECKING:
    from inference.runtime import Runtime


def check_config(config: EngineConfig) -> None:
    """Refuse what no engine could run.

    Raises:
        InvalidRequest
    """

    def refuse(what: str, allowed: str) -> InvalidRequest:
        return InvalidRequest(f"{what} is not possible.", f"Allowed: {allowed}.")

    if config.numerics not in NUMERICS:
        raise refuse(f"numerics {config.numerics!r}", ", ".join(NUMERICS))
    try:
        Precision.parse(config.numerics, config.mixed)
    except ValueError as error:
        raise refuse(f"mixed = {config.mixed!r}", str(error)) from error
    if config.draft not in DRAFTS:
        raise refuse(f"draft {config.draft!r}", ", ".join(DRAFTS))
    if config.kernels not in KERNELS:
        raise refuse(f"kernels {config.kernels!r}", ", ".join(KERNELS))
    if config.kv not in KV_NUMERICS:
        raise refuse(f"KV numerics {config.kv!r}", ", ".join(KV_NUMERICS))
    if config.threads is not None and config.threads < 1:
        raise refuse(f"threads = {config.threads}", "1 or more")
    if config.context < 64:
        raise refuse(f"context = {config.context}", "64 or more")
    if config.draft_model is not None and not config.draft_model.strip():
        raise refuse("an empty draft model", "a catalog name, a .gguf file or a directory; None for none")
    if config.prefill_chunk < 1:
        raise refuse(f"prefill chunk = {config.prefill_chunk}", "1 or more")
    if config.kv_budget_mb < 1:
        raise refuse(f"KV budget = {config.kv_budget_mb} MB", "1 or more")
    if config.kv_offload_mb < 0:
        raise refuse(f"KV offload = {config.kv_offload_mb} MB", "0 or more")


def check_request(request: GenerationRequest, runtime: Runtime) -> None:
    """Raises:
    InvalidRequest, PromptTooLong: with what is allowed.
    """
    if not request.prompt:
        raise InvalidRequest("The prompt is empty.", "Send at least one token.")
    if request.max_new_tokens < 1:
        raise InvalidRequest(f"max_new_tokens is {request.max_new_tokens}.", "Ask for at least one token.")
    if not math.isfinite(request.temperature):
        raise InvalidRequest(f"The temperature is {request.temperature}.", "Use a number, 0 for none.")
    if request.top_k < 0 or not 0.0 <= request.top_p <= 1.0 or not 0.0 <= request.min_p <= 1.0:
        raise InvalidRequest(
            "A filter of the sampling is out of range.", "top_k >= 0, top_p and min_p 0 to 1."
        )
    if request.draft_limit is not None and request.draft_limit < 0:
        raise InvalidRequest(f"draft_limit is {request.draft_limit}.", "0 or more, or None.")
    hint = request.source_hint
    if hint is not None and not 0 <= hint[0] < hint[1] <= len(request.prompt):
        raise InvalidRequest(f"source_hint is {hint}.", "First index and end within the prompt, or None.")
    if len(request.prompt) + 1 > runtime.context:
        raise PromptTooLong(
            f"The prompt has {len(request.prompt)} tokens, the context holds {runtime.context}.",
            "Shorten it or raise --context.",
        )
    if min(request.prompt) < 0 or max(request.prompt) >= runtime.config.vocab_size:
        raise InvalidRequest("A prompt token is outside the vocabulary.", "Use this model's tokenizer.")
    if request.draft is not None and request.draft not in DRAFTS:
        raise InvalidRequest(f"Unknown draft {request.draft!r}.", f"Allowed: {', '.join(DRAFTS)}.")
