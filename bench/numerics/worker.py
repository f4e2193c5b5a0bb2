"""The process in which one numerics is loaded and measured: JSON lines over stdin and stdout.

``{"do": NAME, ...}`` asks for one of ``_ORDERS``; "load" comes first.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from bench.numerics.orders import GAP_VARIANT, converter
from bench.numerics.perplexity import likelihood
from bench.peers.line_worker import serve
from bench.quality.datasets import InfillTask
from bench.quality.draftline_infill import VARIANTS, DraftlineInfill
from bench.speculation.roofline import random_tokens
from inference.api import EngineConfig, StopRules
from inference.runtime import Runtime, load_runtime
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.documents.text import Point, Snapshot

CONTEXT = 256  # cached tokens before a timed forward


class Measured:
    """One loaded model."""

    def __init__(self, config: EngineConfig, options: CompletionOptions) -> None:
        self.runtime: Runtime = load_runtime(config, lambda message, fraction: None)
        self._options = options
        self._builder = PromptBuilder(self.runtime.tokenizer, self.runtime.context)
        self._infill: DraftlineInfill | None = None

    def facts(self) -> dict[str, Any]:
        """What was loaded."""
        runtime = self.runtime
        kernel = runtime.hardware.int8_kernel
        slot = runtime.decoder.new_slot(1)
        return {
            "context": runtime.context,
            "threads": runtime.hardware.threads,
            "kernel": None if kernel is None else kernel.value,
            "bit_exact": runtime.hardware.bit_exact,
            "file_bytes": runtime.prepared.weights.stat().st_size,
            "weight_bytes": runtime.decoder.weights.private_bytes,
            "kv_token_bytes": slot.nbytes / slot.capacity,
        }

    def perplexity(self, text: str, tokens: int) -> dict[str, Any]:
        """Of the text's first tokens."""
        ids = self.runtime.tokenizer.encode(text)[: tokens + 1]
        found = likelihood(self.runtime.decoder, ids, window=min(1024, self.runtime.context))
        return {"nll": found.nll, "tokens": found.tokens}

    def passes(self, rows: list[int], repeats: int) -> dict[str, Any]:
        """[rows, median ms] of forward passes behind ``CONTEXT`` tokens, interleaved over the rows."""
        decoder = self.runtime.decoder
        tokens = random_tokens(self.runtime, CONTEXT + max(rows))
        slot = decoder.new_slot(CONTEXT + max(rows))
        times: dict[int, list[float]] = {count: [] for count in rows}
        torch.set_num_threads(self.runtime.hardware.threads)
        with torch.inference_mode():
            decoder.forward(tokens[:CONTEXT], slot, None)
            # The first pass of a shape builds kernels; it is not counted.
            for repeat in range(-1, repeats):
                for count in rows:
                    slot.truncate(CONTEXT)
                    start = time.perf_counter()
                    decoder.forward(tokens[CONTEXT : CONTEXT + count], slot)
                    if repeat >= 0:
                        times[count].append((time.perf_counter() - start) * 1000)
        return {"passes": [[count, statistics.median(of)] for count, of in times.items()]}

    def greedy(self, place: dict[str, Any], tokens: int) -> dict[str, Any]:
        """The ids of a plain greedy answer at a place."""
        snapshot = Snapshot.of(place["text"], place["path"], language_id=place["language"])
        options = replace(self._options, max_new_tokens=tokens, temperature=0.0, use_cache=False)
        cursor = Point(place["line"], place["column"])
        request = prepare(snapshot, cursor, self._builder, options).request
        stops = StopRules(token_ids=request.stops.token_ids)
        request = replace(request, stops=stops, draft="none")
        return {"ids": list(self.runtime.run(request, lambda chunk: None, lambda: None).token_ids)}

    def gap(self, task: dict[str, Any]) -> dict[str, Any]:
        """The answer to a gap, as the server would insert it."""
        if self._infill is None:
            self._infill = DraftlineInfill(self.runtime, self._options)
        given = self._infill.candidate(VARIANTS[GAP_VARIANT]).answer(converter.structure(task, InfillTask))
        return {
            "text": given.text,
            "ms": given.ms,
            "tokens": given.tokens,
            "finish_reason": given.finish_reason,
        }


def main() -> int:
    """Load, and answer until stdin ends."""
    loaded: list[Measured] = []

    def answer(order: dict[str, Any]) -> dict[str, Any]:
        name = order.pop("do")
        if name == "load":
            config = converter.structure(order["config"], EngineConfig)
            loaded.append(Measured(config, converter.structure(order["options"], CompletionOptions)))
            return loaded[0].facts()
        measure: Callable[..., dict[str, Any]] = getattr(loaded[0], _ORDERS[name])
        return measure(**order)

    serve(answer)
    return 0


_ORDERS = {name: name for name in ("perplexity", "passes", "greedy", "gap")}

if __name__ == "__main__":
    sys.exit(main())
