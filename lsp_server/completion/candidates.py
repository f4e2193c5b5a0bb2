"""Other suggestions for the same place, for a user who asked by hand."""

from __future__ import annotations

from dataclasses import replace

from inference.api import GenerationRequest

TEMPERATURE = 0.8
TOP_P = 0.95


def sampled(request: GenerationRequest, number: int) -> GenerationRequest:
    """The same prompt, whose keys and values are there already, with the dice of candidate ``number``."""
    return replace(request, temperature=TEMPERATURE, top_p=TOP_P, seed=request.seed + number)


def is_new(text: str, others: list[str]) -> bool:
    """Whether a candidate shows something that the ``others`` do not; blanks do not count."""
    words = text.split()
    return all(words != other.split() for other in others)
