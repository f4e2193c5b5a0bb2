"""An output head over the part of a vocabulary that matters now: for models that only guess.

Of a small model's forward the head takes a quarter, and nearly all of what a text needs is among the frequent
tokens (FR-Spec, arXiv 2502.14856) and those that it has used before. Byte-pair vocabularies are
numbered by frequency, so the frequent ones are the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from inference.model.linear.base import Linear

FREQUENT = 32_768
WORTH = 2  # vocabularies below this many times FREQUENT are left whole
MOST_OTHERS = 2_048  # of a text; their rows are float32


class ShortHead:
    """Logits of the frequent tokens, the control tokens and those that the text uses.

    Belongs to one text at a time: `begin` forgets the tokens of the one before.

    Args:
        weight: [vocab, in], any type; stays where it is, its rows are read when a text needs them.
        scale: float32 [vocab] of an integer weight, None of another.
        control: tokens beside the frequent ones that are always there.
        linear: packs rows of the weight, given their numbers int64 [n], into a layer.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        scale: torch.Tensor | None,
        control: Iterable[int],
        linear: Callable[[torch.Tensor], Linear],
    ) -> None:
        self._weight, self._scale = weight, scale
        size = weight.shape[0]
        always = [*range(FREQUENT), *sorted(token for token in set(control) if FREQUENT <= token < size)]
        self._always = torch.tensor(always)
        self._linear = linear(self._always)
        self._rare = frozenset(always[FREQUENT:])
        self._known = {*self._rare}  # tokens behind the frequent ones that have a logit
        self._rows = torch.empty(0, weight.shape[1])  # of those that the text brought
        self.ids = self._always
        """Token of each logit, int64 [out]."""

    @staticmethod
    def pays(vocab_size: int) -> bool:
        """Whether a vocabulary is so large that a short head is faster by much."""
        return vocab_size >= WORTH * FREQUENT

    def begin(self) -> None:
        """Another text."""
        self._known, self._rows, self.ids = {*self._rare}, self._rows[:0], self._always

    def add(self, tokens: Iterable[int]) -> None:
        """These tokens are in the text; ids outside the vocabulary are passed over."""
        size = self._weight.shape[0]
        new = {token for token in tokens if FREQUENT <= token < size} - self._known
        fresh = sorted(new)[: MOST_OTHERS - len(self._rows)]
        if not fresh:
            return
        self._known.update(fresh)
        at = torch.tensor(fresh)
        rows = self._weight[at].float()
        if self._scale is not None:
            rows *= self._scale[at].unsqueeze(1)
        self._rows = torch.cat((self._rows, rows))
        self.ids = torch.cat((self.ids, at))

    @property
    def in_features(self) -> int:
        return self._linear.in_features

    @property
    def out_features(self) -> int:
        return len(self.ids)

    @property
    def weight_bytes(self) -> int:
        return self._linear.weight_bytes + self._rows.nbytes

    @property
    def private_bytes(self) -> int:
        return self._linear.private_bytes + self._rows.nbytes

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [rows, in] -> float32 [rows, len(ids)]."""
        logits = self._linear(x)
        return torch.cat((logits, x @ self._rows.t()), dim=1) if len(self._rows) else logits
