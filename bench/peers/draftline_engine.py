"""Draftline's own runtime as a decoder, loaded into this process."""

from __future__ import annotations

import gc
import os
import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

from bench.machine import cpu_seconds_of, memory_of
from bench.peers.base import Decoded, Decoder, Prompt, Usage
from bench.records import DRAFTERS
from inference.api import DRAFTS, Draft, EngineConfig, GenerationRequest, StopRules
from inference.drafting.base import DRAFT_LIMIT
from inference.drafting.planner import Planner
from inference.precision import precision_of
from inference.runtime import Runtime, load_runtime

# Between the drafter's name and its limit in the name of a mode of a sweep.
_LIMIT_SIGN = "<="


def limited(draft: Draft, limit: int) -> str:
    """The mode that drafts at most ``limit`` tokens for one forward."""
    return f"{draft}{_LIMIT_SIGN}{limit}"


class DraftlineDecoder:
    """Implements ``Decoder``. Threads are governed as in the product.

    ``decode`` also takes the modes that ``limited`` names. Each mode has a planner of its own, as it has in a
    process that runs in that mode only.

    Attributes:
        numerics: of the weights, as `inference.precision.Precision` writes it.
        bit_exact: equal bits are promised on this machine; known once it was started.
    """

    name = "draftline"
    modes: tuple[str, ...] = DRAFTS

    def __init__(self, config: EngineConfig) -> None:
        self._config = replace(config, use_cache=False)
        self.numerics = str(precision_of(config))
        self.bit_exact = False
        self._runtime: Runtime | None = None
        self._planners: defaultdict[str, Planner] = defaultdict(Planner)

    @property
    def runtime(self) -> Runtime:
        """The loaded model; only between ``start`` and ``stop``."""
        assert self._runtime is not None, "not started"
        return self._runtime

    def start(self) -> None:
        """Load the model. Idempotent.

        Raises:
            DraftlineError: with the reason and the next step.
        """
        if self._runtime is None:
            self._runtime = load_runtime(self._config, lambda message, fraction: None)
            self.bit_exact = self._runtime.hardware.bit_exact

    def describe(self) -> dict[str, Any]:
        """Model and numerics, and what the probe chose for this machine."""
        hardware = self.runtime.hardware
        return {
            "model": self.runtime.prepared.source,
            **self._draft_model(),
            "numerics": self.numerics,
            "device": str(hardware.device),
            "threads": hardware.threads,
            "isa": hardware.isa,
            "kernel": None if hardware.int8_kernel is None else hardware.int8_kernel.value,
            "other_steps": "compiled"
            if self.runtime.decoder.fused
            else f"torch: {self.runtime.decoder.note}",
            "bit_exact": self.bit_exact,
            "context": self.runtime.context,
            "prefill_chunk": self._config.prefill_chunk,
            "draft_limit": DRAFT_LIMIT,
        }

    def _draft_model(self) -> dict[str, Any]:
        files = self.runtime.draft_files
        return {} if files is None else {"draft_model": files.prepared.source}

    def decode(
        self,
        prompt: Prompt,
        mode: str,
        max_tokens: int,
        stop_ids: frozenset[int],
        stops: tuple[str, ...] = (),
    ) -> Decoded:
        """Continue a prompt to an end token, a stop or ``max_tokens``."""
        draft, limit = _draft_of(mode)
        request = GenerationRequest(
            prompt.ids,
            max_new_tokens=max_tokens,
            stops=StopRules(token_ids=stop_ids, strings=stops),
            draft=draft,
            draft_limit=limit,
            use_cache=False,
        )
        self.runtime.generator.planner = self._planners[mode]
        # Systems that learn from earlier prompts are started anew for each, so this one starts anew too.
        self.runtime.generator.recycling.clear()
        start = time.perf_counter()
        outcome = self.runtime.run(request, lambda chunk: None, lambda: None)
        end = time.perf_counter()
        return Decoded(
            text=outcome.text,
            token_ids=outcome.token_ids,
            tokens=len(outcome.token_ids),
            prompt_tokens=len(prompt.ids),
            cached_tokens=outcome.cached_tokens,
            prompt_ms=(outcome.prompt_done - start) * 1000,
            first_ms=(outcome.first_token - start) * 1000,
            decode_ms=(end - outcome.first_token) * 1000,
            drafted=outcome.drafted,
            accepted=outcome.accepted,
            forwards=outcome.forwards,
            finish_reason=outcome.reason.value,
            steps=tuple(
                (step.match, step.drafted, step.accepted, step.rows, step.ms, DRAFTERS.index(step.source))
                for step in outcome.steps
            ),
        )

    def usage(self) -> Usage:
        """Of this process, the bench included."""
        private, mapped = memory_of([os.getpid()])
        return Usage(cpu_seconds_of([os.getpid()]), private, mapped)

    def stop(self) -> None:
        """Free the model. Idempotent."""
        self._runtime = None
        self._planners.clear()
        gc.collect()


_: type[Decoder] = DraftlineDecoder


def _draft_of(mode: str) -> tuple[Draft, int | None]:
    name, sign, limit = mode.partition(_LIMIT_SIGN)
    for draft in DRAFTS:
        if draft == name:
            return draft, int(limit) if sign else None
    raise ValueError(f"{mode!r} is no mode of Draftline")
