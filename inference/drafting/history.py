"""Automata of the documents lately asked about, kept between requests.

Typing sends nearly the same prompt again and again. The automaton of the last prompt is kept, and only what
is new is appended: the prompt from the first difference on. Text that has changed since stays in it, together
with earlier answers, which are good guesses for the next one: they began at nearly the same place. When that
makes it too long it is built anew. So appending is all that the automaton must be able to do.
"""

from __future__ import annotations

from collections import OrderedDict

from inference.common_prefix import common_prefix
from inference.drafting.suffix_automaton import SuffixAutomaton

MAX_DOCUMENTS = 4  # some 0.5 kB per token each
SLACK = 2048  # tokens beyond the prompt's own length that may gather before an automaton is built anew
JOINT = 4  # tokens before the first difference that are repeated, so that what is new has a context


class Histories:
    """The most recently used automata. Belongs to the worker thread."""

    def __init__(self, limit: int = MAX_DOCUMENTS) -> None:
        self._limit = limit
        self._known: OrderedDict[str, tuple[SuffixAutomaton, tuple[int, ...]]] = OrderedDict()

    def acquire(self, document: str, prompt: tuple[int, ...]) -> SuffixAutomaton:
        """An automaton whose sequence ends with ``prompt``; what follows the prompt is to be appended to it.

        Args:
            document: "" for one that nothing is kept of.
        """
        kept = self._known.pop(document, None)
        if kept is None:
            automaton, start = SuffixAutomaton(), 0
        else:
            automaton, before = kept
            start = max(common_prefix(before, prompt) - JOINT, 0)
            if len(automaton) + len(prompt) - start > len(prompt) + SLACK:
                automaton, start = SuffixAutomaton(), 0
        automaton.extend(list(prompt[start:]))
        if document:
            self._known[document] = automaton, prompt
            if len(self._known) > self._limit:
                self._known.popitem(last=False)
        return automaton

    def forget(self, document: str) -> None:
        """Drop what is kept of a document."""
        self._known.pop(document, None)

    def clear(self) -> None:
        """Drop everything."""
        self._known.clear()
