"""Do drafter, cache and prefill blocks leave tokens and logits alone? Counted on real prompts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.places import BenchPlace
from bench.records import Compared
from inference.api import Draft, EngineConfig, GenerationRequest, StopRules
from inference.generation import Generator, Outcome
from inference.runtime import Runtime, load_runtime
from inference.threads import ThreadGovernor
from lsp_server.completion.pipeline import CompletionOptions, PromptBuilder, prepare
from lsp_server.documents.text import Point

CHUNKS = (16, 128, 512)
TOKENS = 32  # decoded for each prompt


@dataclass(frozen=True)
class Variant:
    """One way to the answer. ``typed`` puts two earlier keys of the same line before the request."""

    draft: Draft
    chunk: int
    typed: bool


BASELINE = Variant("none", 128, False)
DRAFTS: tuple[Draft, ...] = ("none", "ngram", "auto")
VARIANTS = tuple(
    Variant(draft, chunk, typed) for draft in DRAFTS for chunk in CHUNKS for typed in (False, True)
)
# Each drafter, chunk and way of reaching the cache, but not all combinations.
QUICK_VARIANTS = tuple(
    Variant(draft, CHUNKS[(i + typed) % len(CHUNKS)], typed)
    for i, draft in enumerate(DRAFTS)
    for typed in (True, False)
)


@dataclass(frozen=True)
class Verdict:
    """All comparisons together."""

    comparisons: int
    identical: int
    drafted: int
    accepted: int
    cached: int
    promised: bool

    @property
    def rejected(self) -> int:
        """Drafted tokens that were wrong."""
        return self.drafted - self.accepted

    @property
    def meaningful(self) -> bool:
        """Whether everything that might change an answer has happened."""
        return min(self.comparisons, self.drafted, self.accepted, self.rejected, self.cached) > 0

    @property
    def passed(self) -> bool:
        """Nothing differed; or bits are not promised here, and then any share is only a report."""
        return self.meaningful and (self.identical == self.comparisons or not self.promised)


class ExactnessBench:
    """A loaded model and the ways to run it."""

    def __init__(
        self, config: EngineConfig, options: CompletionOptions, variants: tuple[Variant, ...] = VARIANTS
    ) -> None:
        """``options``: prompt size, temperature and seed are taken from it."""
        self._variants = variants
        self._options = replace(options, max_new_tokens=TOKENS, digest_logits=True)
        self._runtime = load_runtime(config, lambda message, fraction: None)
        # Off, so that all answers come from one number of threads unless --threads says otherwise.
        governor = ThreadGovernor(self._runtime.hardware.threads, enabled=False)
        self._runtimes = {
            chunk: replace(
                self._runtime,
                generator=Generator(
                    self._runtime.decoder,
                    self._runtime.tokenizer,
                    self._runtime.vocabulary,
                    chunk,
                    self._runtime.context,
                    governor,
                    self._runtime.draft_model,
                ),
            )
            for chunk in CHUNKS
        }
        self._builder = PromptBuilder(self._runtime.tokenizer, self._runtime.context)

    @property
    def promised(self) -> bool:
        """Whether this machine's probe promises equal bits."""
        return self._runtime.hardware.bit_exact

    def compare(self, place: BenchPlace) -> Iterator[Compared]:
        """All variants of one place."""
        baseline = self._answer(place, BASELINE)
        for variant in self._variants:
            if variant == BASELINE:
                continue
            answer = self._answer(place, variant)
            yield Compared(
                path=place.path,
                line=place.cursor.line + 1,
                column=place.cursor.column + 1,
                draft=variant.draft,
                chunk=variant.chunk,
                typed=variant.typed,
                same_tokens=answer.token_ids == baseline.token_ids,
                same_logits=answer.logits_sha256 == baseline.logits_sha256,
                prompt_tokens=len(self._request(place, 0).prompt),
                cached_tokens=answer.cached_tokens,
                drafted=answer.drafted,
                accepted=answer.accepted,
                forwards=answer.forwards,
            )

    def _answer(self, place: BenchPlace, variant: Variant) -> Outcome:
        runtime = self._runtimes[variant.chunk]
        # What earlier variants left in the slots must not help a fresh one.
        runtime.slots.drop_document(place.path)
        if variant.typed:
            for back in (3, 1):
                self._run(runtime, replace(self._request(place, back), max_new_tokens=4), variant)
        return self._run(runtime, self._request(place, 0), variant)

    def _run(self, runtime: Runtime, request: GenerationRequest, variant: Variant) -> Outcome:
        request = replace(request, draft=variant.draft, use_cache=variant.typed)
        return runtime.run(request, lambda chunk: None, lambda: None)

    def _request(self, place: BenchPlace, back: int) -> GenerationRequest:
        """The request at the cursor, or before the last ``back`` characters were typed."""
        cursor = Point(place.cursor.line, max(place.cursor.column - back, 0))
        lines = list(place.snapshot.lines)
        line = lines[cursor.line]
        lines[cursor.line] = line[: cursor.column] + line[place.cursor.column :]
        snapshot = replace(place.snapshot, lines=tuple(lines))
        prepared = prepare(snapshot, cursor, self._builder, self._options)
        # Stop rules would end most answers early; length is what gives drafts a chance to go wrong.
        stops = StopRules(token_ids=prepared.request.stops.token_ids)
        return replace(prepared.request, stops=stops)


def verdict(compared: list[Compared], promised: bool) -> Verdict:
    """Sums over all comparisons."""
    return Verdict(
        comparisons=len(compared),
        identical=sum(c.same_tokens and c.same_logits for c in compared),
        drafted=sum(c.drafted for c in compared),
        accepted=sum(c.accepted for c in compared),
        cached=sum(c.cached_tokens > 0 for c in compared),
        promised=promised,
    )
