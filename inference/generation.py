"""The decoding loop: draft, verify, accept, emit."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from inference.api import Chunk, FinishReason, GenerationRequest
from inference.cache.kv import KvSlot
from inference.drafting.auto import AutoDrafter
from inference.drafting.base import DRAFT_LIMIT, UNPLANNED_LIMIT, Source
from inference.drafting.draft_model import DraftModel, DraftModelDrafter
from inference.drafting.drafter import CopyDrafter, Drafter, NoDrafter
from inference.drafting.memory import DraftMemory
from inference.drafting.planner import Planner
from inference.drafting.tree import EMPTY, Tree
from inference.drafting.tree_drafter import TreeDrafter
from inference.healing import Healing, Vocabulary
from inference.model.decoder import Decoder
from inference.model.device import synchronize
from inference.sampling import Sampling, choose
from inference.stops import StopChecker
from inference.threads import ThreadGovernor
from inference.tokenizer import StreamDecoder, Tokenizer

# Reasons that `StopChecker` found itself; the text is then final.
_CUT_BY_STOPS = frozenset(
    {FinishReason.SUFFIX, FinishReason.SCOPE, FinishReason.STOP_STRING, FinishReason.LINES}
)


class Step(NamedTuple):
    """One decode forward: what was guessed, how much of it was right, and what it took.

    ``source`` and ``match`` are those of the `Proposal`; ``rows`` the tokens fed; ``ms`` the milliseconds of
    the forward.
    """

    source: Source
    match: int
    drafted: int
    accepted: int
    rows: int
    ms: float


@dataclass
class Outcome:
    """What `generate` has done so far; complete once it returned. Times as time.perf_counter()."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    reason: FinishReason = FinishReason.LENGTH
    cached_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    forwards: int = 0
    prompt_done: float = 0.0
    first_token: float = 0.0
    logits_sha256: str = ""
    steps: list[Step] = field(default_factory=list)


class Generator:
    """Runs requests on one decoder, one at a time; belongs to the worker thread."""

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        prefill_chunk: int,
        context: int,
        threads: ThreadGovernor,
        draft_model: DraftModel | None = None,
    ) -> None:
        self._decoder = decoder
        self._threads = threads
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._prefill_chunk = prefill_chunk
        self._context = context
        self.planner = Planner()
        self.memory = DraftMemory()
        self.recycling = self.memory.recycling
        self.draft_model = draft_model

    def use(self, decoder: Decoder, threads: ThreadGovernor) -> None:
        """Go on with another decoder of the same model, or other threads."""
        self._decoder, self._threads = decoder, threads

    def generate(
        self,
        request: GenerationRequest,
        slot: KvSlot,
        cached: int,
        draft: str,
        emit: Callable[[Chunk], None],
        interrupted: Callable[[], FinishReason | None],
        reuse: bool = True,
    ) -> Outcome:
        """Continue a prompt.

        Args:
            slot: holds the first ``cached`` prompt tokens; afterwards the prompt and what was
                generated up to the end of the text.
            draft: "none", "ngram" (prompt lookup, always as long as allowed) or "auto" (trees, planned).
            emit: gets text as soon as it is final.
            interrupted: asked before every forward pass; a reason ends the generation.
            reuse: whether guesses may draw on earlier requests of the document.
        """
        outcome = Outcome(cached_tokens=cached)
        logits = self._prefill(request, slot, cached, interrupted)
        outcome.prompt_done = time.perf_counter()
        if logits is None:
            outcome.reason = interrupted() or FinishReason.CANCELLED
            return outcome
        run = _Run(self, request, slot, draft, emit, interrupted, outcome, reuse)
        run.loop(logits)
        return outcome

    def _prefill(
        self,
        request: GenerationRequest,
        slot: KvSlot,
        cached: int,
        interrupted: Callable[[], FinishReason | None],
    ) -> torch.Tensor | None:
        """Compute the rest of the prompt; logits [1, vocab] of its last token, None if interrupted."""
        prompt = request.prompt
        for start in range(cached, len(prompt), self._prefill_chunk):
            if interrupted() is not None:
                return None
            block = list(prompt[start : start + self._prefill_chunk])
            last = start + len(block) == len(prompt)
            logits = self.forward(block, slot, len(block) - 1 if last else None)[0]
        return logits

    def forward(
        self,
        tokens: list[int],
        slot: KvSlot,
        logits_from: int | None = 0,
        parents: list[int] | None = None,
    ) -> tuple[torch.Tensor | None, float]:
        """The decoder's forward, and its milliseconds."""
        self._threads.before_forward()
        start = time.perf_counter()
        logits = self._decoder.forward(tokens, slot, logits_from, parents)
        synchronize(self._decoder.device)
        ms = (time.perf_counter() - start) * 1000
        self._threads.after_forward(len(tokens), ms)
        return logits, ms

    def drafter(
        self,
        draft: str,
        request: GenerationRequest,
        slot: KvSlot,
        cached: int,
        reuse: bool,
        stopped: Callable[[], bool],
    ) -> Drafter:
        """For one answer; see `generate`."""
        prompt = request.prompt
        if draft == "none":
            return NoDrafter()
        if draft == "ngram":
            return CopyDrafter(prompt)
        model = None
        if self.draft_model is not None:
            model = DraftModelDrafter(self.draft_model, self.planner, request, slot, cached, stopped)
            model.extend(list(prompt))
        hint = request.source_hint
        # A kept automaton holds only what is new of a prompt, so a hint would point elsewhere.
        memory, document = self.memory, request.document if reuse and hint is None else ""
        guesses = TreeDrafter(
            lambda: memory.history(document, prompt),
            memory,
            self.planner,
            None if hint is None else len(prompt) - hint[0],
        )
        return AutoDrafter(guesses, self.planner, self._decoder.trees, model)


class _Run:
    """One decode loop."""

    def __init__(
        self,
        generator: Generator,
        request: GenerationRequest,
        slot: KvSlot,
        draft: str,
        emit: Callable[[Chunk], None],
        interrupted: Callable[[], FinishReason | None],
        outcome: Outcome,
        reuse: bool,
    ) -> None:
        self._forward = generator.forward
        self._planner = generator.planner
        self._request = request
        self._sampling = Sampling(
            request.temperature, request.top_k, request.top_p, request.min_p, request.seed
        )
        self._slot = slot
        self._emit = emit
        self._interrupted = interrupted
        self._outcome = outcome
        self._drafter = generator.drafter(
            draft, request, slot, outcome.cached_tokens, reuse, lambda: self._stop_reason() is not None
        )
        self._digest = hashlib.sha256() if request.digest_logits else None
        self._stops = StopChecker(request.stops)
        self._stream = StreamDecoder(generator._tokenizer)
        self._healing = Healing(request.heal, generator._vocabulary, generator._tokenizer)
        self._ids: list[int] = []
        self._sent = 0  # characters handed to emit
        self._sent_ids = 0
        limit = DRAFT_LIMIT if draft == "auto" else UNPLANNED_LIMIT
        self._draft_limit = limit if request.draft_limit is None else min(request.draft_limit, DRAFT_LIMIT)
        self._context = generator._context
        self._room = self._context - len(request.prompt)
        self._limit = min(request.max_new_tokens, self._room)
        self._deadline = (
            None
            if request.stops.deadline_ms is None
            else time.perf_counter() + request.stops.deadline_ms / 1000
        )

    def loop(self, logits: torch.Tensor) -> None:
        """Decode until something ends it, then fill the outcome."""
        outcome = self._outcome
        token = self._choose(logits)[0]
        self._hash(logits[:1])
        outcome.first_token = time.perf_counter()
        reason = self._take(token)
        while reason is None:
            reason = self._step()
        if reason not in _CUT_BY_STOPS:
            self._feed(self._stream.finish())
            self._stops.finish()
        outcome.reason = reason
        outcome.text = self._stops.text
        outcome.token_ids = tuple(self._ids)
        if self._digest is not None:
            outcome.logits_sha256 = self._digest.hexdigest()
        self._flush(len(outcome.text))
        # The last token was chosen but not fed, unless an accepted draft had fed it already.
        kept = len(self._request.prompt) + len(self._ids) - 1
        self._slot.truncate(min(kept, self._slot.length))

    def _step(self) -> FinishReason | None:
        """One forward: the last token with a tree of guesses behind it."""
        slot, outcome = self._slot, self._outcome
        start = slot.length
        # A slot is longer than a context that is no whole number of buckets.
        left, room = self._limit - len(self._ids) - 1, min(slot.capacity, self._context) - start - 1
        healing = bool(self._healing.missing)
        limit = min(self._draft_limit, room)
        tree = EMPTY if healing else self._drafter.propose(limit, left)
        # Asked now and not before: drafting may have taken a while.
        reason = self._stop_reason()
        if reason is not None:
            return reason
        fed = [self._ids[-1], *tree.tokens]
        try:
            logits, chosen, ms = self._verify(fed, tree, healing)
        except BaseException:
            slot.truncate(min(start, slot.length))  # rows of a tree must not be taken for a chain
            raise
        rows = [0, *(node + 1 for node in tree.taken(chosen))]
        slot.keep(start, rows)
        right = len(rows) - 1
        outcome.forwards += 1
        outcome.drafted += len(tree)
        source, match = (tree.sources[0], self._drafter.match) if len(tree) else ("none", 0)
        outcome.steps.append(Step(source, match, len(tree), right, len(fed), ms))
        for at, row in enumerate(rows):
            self._hash(logits[row : row + 1])
            outcome.accepted += at < right
            reason = self._take(chosen[row])
            if reason is not None:
                break
        return reason

    def _verify(self, fed: list[int], tree: Tree, healing: bool) -> tuple[torch.Tensor, list[int], float]:
        """The logits [rows, vocab] of one forward, the token that each row chooses, and its milliseconds."""
        parents = [-1, *(parent + 1 for parent in tree.parents)]
        logits, ms = self._forward(fed, self._slot, 0, parents)
        assert logits is not None
        self._planner.observe(len(fed), ms)
        chosen = self._choose(logits, tree)
        if not healing:  # else it was not the model's free choice
            self._drafter.verified(fed, chosen)
        return logits, chosen, ms

    def _choose(self, logits: torch.Tensor, tree: Tree = EMPTY) -> list[int]:
        if self._healing.missing:
            logits = self._healing.constrain(logits)
        position = len(self._request.prompt) + len(self._ids)
        return choose(logits, position, self._sampling, tree.depths())

    def _hash(self, row: torch.Tensor) -> None:
        if self._digest is not None:
            self._digest.update(row.cpu().numpy().tobytes())

    def _take(self, token: int) -> FinishReason | None:
        """Append a chosen token; the reason if the text ends with it."""
        self._ids.append(token)
        self._healing.took(token)
        if self._healing.missing:
            self._limit = min(self._limit + 1, self._room)  # it is no part of the answer
        if token in self._request.stops.token_ids:
            return FinishReason.STOP_TOKEN
        self._drafter.extend([token])
        reason = self._feed(self._stream.push(token))
        if reason is None and len(self._ids) >= self._limit:
            reason = FinishReason.CONTEXT if self._limit == self._room else FinishReason.LENGTH
        return reason

    def _feed(self, piece: str) -> FinishReason | None:
        reason = self._stops.push(self._healing.visible(piece))
        if reason is None:
            self._flush(self._stops.settled)
        return reason

    def _flush(self, end: int) -> None:
        if end > self._sent:
            self._emit(Chunk(self._stops.text[self._sent : end], tuple(self._ids[self._sent_ids :])))
            self._sent, self._sent_ids = end, len(self._ids)

    def _stop_reason(self) -> FinishReason | None:
        return self._interrupted() or self._over_deadline()

    def _over_deadline(self) -> FinishReason | None:
        over = self._deadline is not None and time.perf_counter() >= self._deadline
        return FinishReason.DEADLINE if over else None
