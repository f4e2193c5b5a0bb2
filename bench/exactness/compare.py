"""Answers a prompt plainly and in other ways, and compares tokens and logits."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from bench.exactness.prompts import ExactPrompt, is_long
from bench.exactness.variants import CHUNKS, PLAIN, THREADS, TOP_P, Variant
from bench.records import Checked, CheckedWay
from inference.api import EngineConfig, GenerationRequest
from inference.generation import Generator, Outcome
from inference.precision import precision_of
from inference.runtime import Runtime, load_runtime
from inference.threads import ThreadGovernor

# Decoded for the keys before a request, and in the documents around it.
_FEW = 4
# The other document of "forked" goes its own way this many tokens before the end at most.
_OWN_TOKENS = 256


class ExactnessBench:
    """A loaded model and the ways to run it.

    Attributes:
        promised: this machine's probe promises equal bits.
        threads: numbers of threads over which equal bits are promised.
    """

    def __init__(self, config: EngineConfig) -> None:
        """Load the model.

        Raises:
            DraftlineError: with the reason and the next step.
        """
        runtime = load_runtime(config, lambda message, fraction: None)
        self._runtime: Runtime | None = runtime
        self._by_chunk = {chunk: _in_chunks(runtime, chunk) for chunk in CHUNKS}
        self._before: GenerationRequest | None = None
        self.promised = runtime.hardware.bit_exact
        self.threads = THREADS if precision_of(config).used == {"int8"} else ()

    @property
    def runtime(self) -> Runtime:
        """The loaded model; only until ``stop``."""
        assert self._runtime is not None, "stopped"
        return self._runtime

    def stop(self) -> None:
        """Free the model. Idempotent."""
        self._runtime = None
        self._by_chunk.clear()
        gc.collect()

    def compare(self, prompt: ExactPrompt, variants: Sequence[Variant], temperature: float = 0.0) -> Checked:
        """The plain answer against those of all variants."""
        prompt = _at(prompt, temperature)
        plain = self._answer(prompt, PLAIN)
        ways = [self._way(prompt, variant, plain) for variant in variants]
        self._forget(prompt)
        if not is_long(prompt):
            self._before = prompt.request
        return Checked(
            set=prompt.set,
            source=prompt.source,
            prompt_tokens=len(prompt.request.prompt),
            tokens=len(plain.token_ids),
            temperature=temperature,
            digest=plain.logits_sha256[:16],
            ways=[list(way) for way in ways],
        )

    def plain(self, requests: Iterable[GenerationRequest], threads: int | None = None) -> list[Outcome]:
        """Plain answers from nothing cached."""
        return [self._run(request, replace(PLAIN, threads=threads), cached=False) for request in requests]

    def _way(self, prompt: ExactPrompt, variant: Variant, plain: Outcome) -> CheckedWay:
        answer = self._answer(prompt, variant)
        return CheckedWay(
            draft=variant.draft,
            limit=variant.limit,
            cache=variant.cache,
            chunk=variant.chunk,
            threads=variant.threads,
            cached_tokens=answer.cached_tokens,
            drafted=answer.drafted,
            accepted=answer.accepted,
            forwards=answer.forwards,
            widest=max((step.rows for step in answer.steps), default=0),
            same_tokens=answer.token_ids == plain.token_ids,
            same_logits=answer.logits_sha256 == plain.logits_sha256,
        )

    def _answer(self, prompt: ExactPrompt, variant: Variant) -> Outcome:
        """The answer after what the cache state of the variant needs."""
        request, cache = prompt.request, variant.cache
        if cache != "kept" and (not is_long(prompt) or cache in ("fresh", "unrelated")):
            # What earlier ways left in the slots must not help; but reading a long prompt anew costs much.
            self._forget(prompt)
        if cache == "typed":
            for key in prompt.earlier:
                self._run(replace(key, max_new_tokens=_FEW), variant)
        elif cache == "forked":
            self._run(_fork(request), variant)
        elif cache == "unrelated" and self._before is not None:
            # The document's whole text was replaced.
            other = replace(self._before, document=request.document, max_new_tokens=_FEW)
            self._run(other, variant)
        return self._run(request, variant, cached=cache != "fresh")

    def _run(self, request: GenerationRequest, variant: Variant, cached: bool = True) -> Outcome:
        torch.set_num_threads(variant.threads or self.runtime.hardware.threads)
        limit = variant.limit if variant.draft != "none" else None
        request = replace(request, draft=variant.draft, draft_limit=limit, use_cache=cached)
        return self._by_chunk[variant.chunk].run(request, lambda chunk: None, lambda: None)

    def _forget(self, prompt: ExactPrompt) -> None:
        for document in (prompt.request.document, _fork_name(prompt.request)):
            self.runtime.close_document(document)


def _in_chunks(runtime: Runtime, chunk: int) -> Runtime:
    """The same model and caches with another number of prompt tokens for each forward."""
    # Off: the variants say how many threads there are.
    governor = ThreadGovernor(runtime.hardware.threads, enabled=False)
    generator = Generator(
        runtime.decoder,
        runtime.tokenizer,
        runtime.vocabulary,
        chunk,
        runtime.context,
        governor,
        runtime.draft_model,
    )
    return replace(runtime, generator=generator)


def _at(prompt: ExactPrompt, temperature: float) -> ExactPrompt:
    """The prompt and the keys before it, sampled at a temperature."""

    def sampled(request: GenerationRequest) -> GenerationRequest:
        return replace(request, temperature=temperature, top_p=TOP_P if temperature > 0 else 1.0)

    return replace(prompt, request=sampled(prompt.request), earlier=tuple(map(sampled, prompt.earlier)))


def _fork(request: GenerationRequest) -> GenerationRequest:
    """Another document that begins alike and ends otherwise."""
    prompt = request.prompt
    cut = max(len(prompt) * 3 // 4, len(prompt) - _OWN_TOKENS)
    ending = tuple(reversed(prompt[cut:]))
    return replace(
        request, prompt=prompt[:cut] + ending, document=_fork_name(request), heal="", max_new_tokens=_FEW
    )


def _fork_name(request: GenerationRequest) -> str:
    return request.document + "-fork"


def differences(checked: Iterable[Checked]) -> Iterator[str]:
    """A line for each way that gave another answer."""
    for record in checked:
        for way in record.answers():
            if not way.same:
                where = record.source or "made up"
                yield (
                    f"{record.set} {where} ({record.prompt_tokens} tokens, temperature"
                    f" {record.temperature:g}): {way}"
                )
