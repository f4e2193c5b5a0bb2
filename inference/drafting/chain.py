"""The drafter of ``auto``: the likeliest of what several sources propose."""

from __future__ import annotations

from collections.abc import Callable

from inference.drafting.base import NOTHING, Proposal
from inference.drafting.draft_model import DraftModelDrafter
from inference.drafting.recycling import RecyclingTable
from inference.drafting.source_pointer import SourcePointer
from inference.drafting.suffix_index import SuffixIndex


class ChainDrafter:
    """Copies from earlier text, and where there is nothing to copy repeats the model's habits.

    A draft model is asked where the text it would make is expected to come faster than by the others.

    Args:
        recycling: of the model, shared by all requests.
        chance: how likely the first token of a proposal is right, as learned so far.
        model: drafts with a smaller model, None if there is none.
    """

    def __init__(
        self,
        recycling: RecyclingTable,
        chance: Callable[[Proposal], float],
        model: DraftModelDrafter | None = None,
    ) -> None:
        self._index = SuffixIndex()
        self._pointer = SourcePointer(self._index.tokens)
        self._recycling = recycling
        self._chance = chance
        self._model = model

    def expect_copy(self, start: int) -> None:
        """What comes next is expected to copy the sequence from index ``start`` on."""
        self._pointer.await_copy(start)

    def extend(self, tokens: list[int]) -> None:
        """Append tokens that are now part of the sequence."""
        if self._model is not None:
            self._model.extend(tokens)
        if self._pointer.position is None:
            self._index.extend(tokens)
            return
        for token in tokens:
            self._pointer.follow(token)
            self._index.extend([token])

    def propose(self, limit: int) -> Proposal:
        """The proposal with the best chance."""
        if limit <= 0:
            return NOTHING
        proposal = self._remembered(limit)
        if self._model is not None and self._model.worth(proposal):
            drafted = self._model.propose(limit)
            if drafted.tokens:
                return drafted
        return proposal

    def _remembered(self, limit: int) -> Proposal:
        """The best proposal that costs nothing to make."""
        sequence = self._index.tokens
        found, place = self._index.lookup(limit)
        ahead = Proposal(self._pointer.ahead(limit), self._pointer.run, "pointer")
        best = max((p for p in (found, ahead) if p.tokens), key=self._chance, default=NOTHING)
        if best is found and found.tokens:
            self._pointer.place(place, found.match)
        if best.tokens or len(sequence) < 2:
            return best
        return self._recycling.propose(sequence[-2], sequence[-1], limit)

    def verified(self, fed: list[int], chosen: list[int]) -> None:
        """Remember the model's choices, also behind tokens that turn out wrong."""
        if self._model is not None:
            self._model.verified(fed, chosen)
        sequence = self._index.tokens
        if len(sequence) > 1:
            self._recycling.learn(sequence[-2], fed, chosen)
