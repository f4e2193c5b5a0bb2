"""Negative log-likelihood of a text, in windows that each start from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from inference.model.decoder import Decoder

WINDOW = 1024  # tokens
CHUNK = 256  # of a forward


@dataclass
class Likelihood:
    """Attributes:
    nll: sum over all predicted tokens, in nats.
    argmax: for each of them what the model thinks likeliest.
    """

    nll: float = 0.0
    argmax: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Predicted ones."""
        return len(self.argmax)


def likelihood(
    decoder: Decoder, tokens: Sequence[int], window: int = WINDOW, chunk: int = CHUNK
) -> Likelihood:
    """Of every token but the first of a window; windows overlap by that one token."""
    slot = decoder.new_slot(window)
    found = Likelihood()
    with torch.inference_mode():
        for start in range(0, len(tokens) - 1, window):
            slot.truncate(0)
            part = list(tokens[start : start + window + 1])
            for at in range(0, min(window, len(part) - 1), chunk):
                targets = part[at + 1 : at + 1 + chunk]
                logits = decoder.forward(part[at : at + len(targets)], slot)
                assert logits is not None
                chance = torch.log_softmax(logits.double(), -1)
                found.nll -= chance[torch.arange(len(targets)), torch.tensor(targets)].sum().item()
                found.argmax += logits.argmax(-1).tolist()
    return found
