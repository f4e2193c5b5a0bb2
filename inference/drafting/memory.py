"""What drafting keeps between requests, and how it is forgotten. In memory only."""

from __future__ import annotations

from collections.abc import Sequence

from inference.drafting.history import Histories
from inference.drafting.recycling import RecyclingTable
from inference.drafting.shared_index import SharedIndex
from inference.drafting.suffix_automaton import SuffixAutomaton


class DraftMemory:
    """Belongs to the worker thread. Nothing in it ever decides about text.

    What came without a name of a document is not kept, because nobody could ask to forget it; the recycling
    table, which knows pairs of tokens and no texts, learns from it all the same.
    """

    def __init__(self) -> None:
        self.recycling = RecyclingTable()
        self.shared = SharedIndex()
        self.histories = Histories()

    def history(self, document: str, prompt: tuple[int, ...]) -> SuffixAutomaton:
        """For `TreeDrafter`: the document's automaton with this prompt at its end."""
        return self.histories.acquire(document, prompt)

    def learn_text(self, document: str, tokens: Sequence[int]) -> None:
        """A document's text, in place of what was known of it. Long ones come in pieces: see `learn_more`."""
        self.shared.forget(_text_of(document))
        self.learn_more(document, tokens)

    def learn_more(self, document: str, tokens: Sequence[int]) -> None:
        """The next piece of a document's text."""
        if document:
            self.shared.add(tokens, _text_of(document))

    def learn_answer(self, document: str, tokens: Sequence[int]) -> None:
        """What was generated for a document."""
        if document:
            self.shared.add(tokens, _answers_of(document))

    def close_document(self, document: str) -> None:
        """Forget a document's text and what was generated for it."""
        self.histories.forget(document)
        self.shared.forget(_text_of(document))
        self.shared.forget(_answers_of(document))

    def clear(self) -> None:
        """Forget everything."""
        self.recycling.clear()
        self.shared.clear()
        self.histories.clear()


def _text_of(document: str) -> str:
    return f"text {document}"


def _answers_of(document: str) -> str:
    return f"answers {document}"
