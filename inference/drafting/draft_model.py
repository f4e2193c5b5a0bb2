"""Drafting with a smaller model of the same vocabulary.

Speculative decoding with a draft model (arXiv 2211.17192): for each forward of the target a chain, and what
it would have chosen else where it was unsure, as the target's rows cost little. Above temperature 0 both
models choose with the same noise at the same position, which makes them agree more often than independent
draws (Gumbel coupling, Daliri et al., arXiv 2408.07978); the target's choice decides in any case.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from inference.api import GenerationRequest
from inference.cache.kv import KvSlot
from inference.drafting.chain import BREADTH, Chain
from inference.drafting.model_worth import LEAST_CHANCE, SHORT, Ask, Costs
from inference.drafting.planner import Planner
from inference.drafting.tree import EMPTY, Tree
from inference.model.decoder import Decoder
from inference.model.device import synchronize
from inference.model.linear.short_head import ShortHead
from inference.sampling import Sampling, filtered, gumbel_noise

# Answers that profit from text read once, where the target has most of the prompt from an earlier request:
# the next requests of a document begin alike.
WARM_ANSWERS = 4
# Tokens that are read at once at most. A draft model that knows the last lines guesses nearly as well as one
# that has read all; to read all would cost more than short answers bring.
WINDOW = 192


@dataclass
class Follower:
    """The draft model's slot for one of the target's, and where in the target's text it begins."""

    slot: KvSlot
    begin: int = 0


class DraftModel:
    """A decoder that drafts, with a KV slot for each of the target's. Belongs to the worker thread.

    Attributes:
        name: as asked for.
        context: tokens that one slot holds.
        vocab_size: ids below it are of both models.
    """

    def __init__(
        self, name: str, decoder: Decoder, target: Decoder, context: int, prefill_chunk: int
    ) -> None:
        self.name = name
        self.decoder = decoder
        self.context = context
        self.prefill_chunk = prefill_chunk
        self.noise_size = target.config.vocab_size
        self.vocab_size = min(self.noise_size, decoder.config.vocab_size)
        head = decoder.weights.head
        self.head = head if isinstance(head, ShortHead) else None
        left_out = 0 if self.head is None else decoder.config.vocab_size - self.head.out_features
        read = decoder.config.linear_weights - left_out * decoder.config.hidden_size
        self.relative_size = read / target.config.linear_weights
        self._followers: weakref.WeakKeyDictionary[KvSlot, Follower] = weakref.WeakKeyDictionary()

    def follower_of(self, target: KvSlot) -> Follower | None:
        """What follows one of the target's slots, None if nothing was drafted there yet."""
        return self._followers.get(target)

    def follow(self, target: KvSlot) -> Follower:
        """Make what follows one of the target's slots."""
        follower = self._followers[target] = Follower(self.decoder.new_slot(self.longest(target)))
        follower.slot.epoch = target.epoch
        return follower

    def longest(self, target: KvSlot) -> int:
        """Positions that the slot of one of the target's may need."""
        return min(self.context, target.capacity)

    def keep_to(self, targets: Sequence[KvSlot]) -> None:
        """Give up what follows any other slot. One that waits in main memory would else keep its follower on
        the device, in room that the budget has given away."""
        for target in [target for target in self._followers if target not in targets]:
            del self._followers[target]

    def follow_targets(self) -> None:
        """Forget what the target's slots do not hold any more."""
        for target, follower in self._followers.items():
            slot = follower.slot
            slot.truncate(slot.common_prefix(tuple(target.tokens[follower.begin :])))


@dataclass(frozen=True)
class _Draft:
    """What was proposed: a chain, the draft model's probability of each token, its forwards, the costs then.

    Attributes:
        tree: the chain, and alternatives to its tokens behind all of it.
    """

    tokens: tuple[int, ...]
    tree: Tree
    probabilities: tuple[float, ...]
    forwards: float
    costs: Costs


class DraftModelDrafter:
    """Follows one sequence with the draft model.

    The slot is brought up to date when a draft is wanted, not before. What the target rejected is cut off
    then, and what the draft model has not seen is read in blocks; progress is kept if it is interrupted.
    """

    def __init__(
        self,
        model: DraftModel,
        planner: Planner,
        request: GenerationRequest,
        target: KvSlot,
        cached: int,
        stopped: Callable[[], bool],
    ) -> None:
        """Args:
        target: the slot that the target uses; it held the first ``cached`` prompt tokens before.
        stopped: asked before every forward; no more are made when it says so.
        """
        self._model = model
        self._planner = planner
        self._sampling = Sampling(
            request.temperature, request.top_k, request.top_p, request.min_p, request.seed
        )
        self._target = target
        self._stopped = stopped
        self._end = len(request.prompt) + request.max_new_tokens
        deadline = request.stops.deadline_ms
        self._deadline = None if deadline is None else time.perf_counter() + deadline / 1000
        self._answers = WARM_ANSWERS if 2 * cached > len(request.prompt) else 1
        self._sequence: list[int] = []
        self._foreign = False  # the sequence has a token that the draft model does not know
        self._shown = 0  # leading tokens of the sequence that the short head has
        self._agreeing = 0  # leading tokens of the slot known to be those of the sequence
        self._other: float | None = None
        self._draft: _Draft | None = None
        self._follower = model.follower_of(target)
        if self._follower is not None:
            # Never more than the target reuses: a measurement without the cache is one of both models.
            slot, begin = self._follower.slot, self._follower.begin
            reusable = cached if slot.epoch == target.epoch else 0
            slot.truncate(min(max(reusable - begin, 0), slot.length))
            slot.epoch = target.epoch
        planner.model.begin(model.relative_size)

    def extend(self, tokens: list[int]) -> None:
        """Append tokens that are now part of the sequence."""
        self._foreign = self._foreign or max(tokens, default=0) >= self._model.vocab_size
        self._sequence += tokens

    def worth(self, other: float) -> bool:
        """Whether to draft, when another proposal promises this speed, a multiple of plain decoding's."""
        planner, size = self._planner, len(self._sequence)
        begin, start = self._reading()
        if self._foreign or not 0 < size - begin <= self._model.context or not planner.costs.plain_ms:
            return False
        self._other = other
        ask = Ask(self._other, size - 1 - start, self._left(), self._answers)
        worth = planner.model.pays(ask, self._costs())
        if not worth:
            planner.model.silent(planner.costs.plain_ms)
        return worth

    def propose(self, limit: int, depth: int, branches: bool = True) -> Tree:
        """A chain of the draft model's choices, as long as one more is expected to pay, and alternatives.

        Args:
            limit: most nodes.
            depth: most of them in a row.
            branches: whether there may be alternatives.
        """
        model, worth, costs = self._model, self._planner.model, self._costs()
        size = len(self._sequence)
        # The last token of a draft is not fed.
        if self._foreign or size == 0:
            return EMPTY
        follower, backlog, logits = self._catch_up()
        depth = min(depth, limit, model.context - (size - follower.begin) + 1)
        if depth <= 0:
            return EMPTY
        if backlog > SHORT:
            worth.read(backlog, costs)
        if logits is None:
            return EMPTY
        forwards = 1.0 + (worth.rows(backlog) if backlog <= SHORT else 0.0)
        chain = Chain(max(LEAST_CHANCE, costs.row))
        probabilities: list[float] = []
        while True:
            guesses = self._guesses(logits, size + len(chain))
            token, probability = guesses[0]
            if not chain.append(token, worth.chance(probability), guesses[1:]):
                break
            probabilities.append(probability)
            if len(chain) >= depth or not worth.goes_on(chain.chance, len(chain), forwards, costs):
                break
            if self._stopped():
                break
            logits = self._forward(follower.slot, [token], True)
            assert logits is not None
            forwards += 1
        tree = chain.tree(limit if branches else len(chain))
        self._draft = _Draft(tuple(chain.tokens), tree, tuple(probabilities), forwards, costs)
        return tree

    @property
    def expected(self) -> int:
        """How many tokens of the draft are expected to be right, rounded down."""
        return 0 if self._draft is None else int(sum(self._draft.tree.chances))

    def verified(self, tree: Tree, chosen: Sequence[int]) -> None:
        """Learn from the target's choices behind the rows of a tree, this one's or another proposal."""
        worth, draft = self._planner.model, self._draft
        taken = tree.taken(chosen)
        worth.stepped(1 + len(taken), self._other)
        if draft is not None:
            own = tree is draft.tree
            other = 1.0 if self._other is None else self._other
            # Without a proposal of its own another drafter stepped in.
            nodes, right = (len(tree), len(taken)) if own else (0, 0)
            worth.learn(nodes, right, draft.forwards, other, draft.costs)
            for place, token in enumerate(draft.tokens if own else ()):
                right = chosen[place] == token
                worth.calibration.learn(draft.probabilities[place], right)
                if not right:
                    break
        self._draft = self._other = None

    def _left(self) -> int:
        """Tokens that the answer may still have, by plain decoding if there is a deadline."""
        left = self._end - len(self._sequence)
        if self._deadline is None:
            return left
        return min(left, int((self._deadline - time.perf_counter()) * 1000 / self._planner.costs.plain_ms))

    def _costs(self) -> Costs:
        costs = self._planner.costs
        return self._planner.model.costs(costs.plain_ms, costs.row)

    def _agree(self, held: Sequence[int], begin: int) -> int:
        """How many of these tokens, from the first on, are those of the sequence from ``begin`` on."""
        sequence = self._sequence
        limit = min(len(held), len(sequence) - begin)
        while self._agreeing < limit and held[self._agreeing] == sequence[begin + self._agreeing]:
            self._agreeing += 1
        return self._agreeing

    def _reading(self) -> tuple[int, int]:
        """Where in the sequence the slot will begin, and the first token that it will have to read.

        The last token is always read: what stands behind it is asked for.
        """
        last = len(self._sequence) - 1
        if self._follower is not None:
            begin = self._follower.begin
            useful = min(self._agree(self._follower.slot.tokens, begin), last - begin)
            fits = last - begin < self._model.context
            if useful > 0 and last - begin - useful < WINDOW and fits:
                return begin, begin + useful
        # What was read before is another text, or lies too far behind, or fills the slot.
        start = max(0, last - WINDOW)
        return start, start

    def _catch_up(self) -> tuple[Follower, int, torch.Tensor | None]:
        """Feed what the slot lacks of the sequence, its last token at least.

        Returns:
            what follows the target; tokens fed beside that one; logits [1, vocab] behind it, None if
            interrupted.
        """
        follower = self._follower = self._follower or self._model.follow(self._target)
        slot, size, chunk = follower.slot, len(self._sequence), self._model.prefill_chunk
        longest = self._model.longest(self._target)
        if slot.capacity < longest:
            slot.resize(longest)
        follower.begin, start = self._reading()
        self._agreeing = start - follower.begin
        slot.truncate(self._agreeing)
        self._show()
        logits = None
        for first in range(start, size, chunk):
            if self._stopped():
                return follower, first - start, None
            block = self._sequence[first : first + chunk]
            logits = self._forward(slot, block, first + chunk >= size)
        return follower, size - 1 - start, logits

    def _show(self) -> None:
        """Let a short head have the tokens of the sequence."""
        head = self._model.head
        if head is None:
            return
        if not self._shown:
            head.begin()
        head.add(self._sequence[self._shown :])
        self._shown = len(self._sequence)

    def _forward(self, slot: KvSlot, tokens: list[int], wanted: bool) -> torch.Tensor | None:
        """Logits [1, vocab] behind the last of ``tokens`` if they are wanted."""
        begin = time.perf_counter()
        logits = self._model.decoder.forward(tokens, slot, len(tokens) - 1 if wanted else None)
        synchronize(self._model.decoder.device)
        self._planner.model.observe(len(tokens), (time.perf_counter() - begin) * 1000)
        return logits

    def _guesses(self, logits: torch.Tensor, position: int) -> list[tuple[int, float]]:
        """The draft model's likeliest tokens at a position of the sequence, its choice first.

        Returns:
            each with its probability.
        """
        model, scores = self._model, logits[0]
        ids = None if model.head is None else model.head.ids
        if ids is None:
            scores = scores[: model.vocab_size]
        ranked = scores
        if self._sampling.temperature > 0:
            scores = filtered(scores, self._sampling)
            noise = gumbel_noise(model.noise_size, self._sampling.seed, position)
            ranked = scores + (noise[: scores.shape[0]] if ids is None else noise[ids]).to(scores.device)
        best = ranked.topk(min(BREADTH, ranked.shape[0])).indices
        chances = (scores[best] - scores.logsumexp(dim=-1)).exp()
        tokens = best if ids is None else ids[best]
        return list(zip(tokens.tolist(), chances.tolist(), strict=True))
