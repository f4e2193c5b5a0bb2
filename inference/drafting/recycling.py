"""Token recycling: what the model chose the last time it stood behind the same tokens.

After Token Recycling (arXiv 2408.08696), which keeps the top candidates of every logits row that was ever
computed, also of rows behind rejected drafts. Here a chain of the first candidates, for one and for two
tokens of context; the table outlives the request, so that a session's habits are known.
"""

from __future__ import annotations

from inference.drafting.base import NOTHING, Proposal

# Pairs that are kept; the oldest half goes when there are more.
MAX_PAIRS = 1 << 17


class RecyclingTable:
    """Successors of tokens and of pairs. Shared by all requests of a model; never decides about text."""

    def __init__(self) -> None:
        self._after_token: dict[int, int] = {}
        self._after_pair: dict[tuple[int, int], int] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._after_token.clear()
        self._after_pair.clear()

    def learn(self, before: int, fed: list[int], chosen: list[int]) -> None:
        """From one forward.

        Args:
            before: the token before ``fed``.
            fed, chosen: for each token of the block, the one that the model puts behind it.
        """
        for token, choice in zip(fed, chosen, strict=True):
            self._after_token[token] = choice
            # Taken out first, so that the dictionary's order is that of the last use.
            self._after_pair.pop((before, token), None)
            self._after_pair[before, token] = choice
            before = token
        if len(self._after_pair) > MAX_PAIRS:
            self._after_pair = dict(list(self._after_pair.items())[MAX_PAIRS // 2 :])

    def propose(self, before: int, last: int, limit: int) -> Proposal:
        """A chain behind two tokens; its match is how many of them the first guess rests on."""
        if limit <= 0 or last not in self._after_token:
            return NOTHING
        match = 2 if (before, last) in self._after_pair else 1
        draft: list[int] = []
        while len(draft) < limit:
            choice = self._after_pair.get((before, last))
            if choice is None:
                choice = self._after_token.get(last)
            if choice is None:
                break
            draft.append(choice)
            before, last = last, choice
        return Proposal(tuple(draft), match, "recycling")
