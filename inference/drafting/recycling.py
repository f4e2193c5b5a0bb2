"""Token recycling: what the model thought the last time it stood behind the same tokens.

After Token Recycling (arXiv 2408.08696), which keeps the top candidates of every logits row that was ever
computed, also of rows behind rejected drafts. Here for one and for two tokens of context; the table outlives
the request, so that a session's habits are known.
"""

from __future__ import annotations

from collections.abc import Sequence

# Pairs that are kept; the oldest half goes when there are more.
MAX_PAIRS = 1 << 17
TOP = 4  # candidates kept for a context

_PAIR_BITS = 24  # more than any vocabulary needs


class RecyclingTable:
    """Successors of tokens and of pairs. Shared by all requests of a model; never decides about text."""

    def __init__(self) -> None:
        self._after_token: dict[int, tuple[int, ...]] = {}
        self._after_pair: dict[int, tuple[int, ...]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._after_token.clear()
        self._after_pair.clear()

    def learn(
        self,
        before: int,
        fed: Sequence[int],
        chosen: Sequence[int],
        top: Sequence[Sequence[int]] | None = None,
        parents: Sequence[int] | None = None,
    ) -> None:
        """From one forward.

        Args:
            before: the token before ``fed``.
            fed, chosen: for each token of the block, the one that the model puts behind it.
            top: for each token of the block, the likeliest tokens behind it in descending order. Without
                them the candidates are the different choices so far, the newest first.
            parents: for each token of the block the one before it in the block, -1 for the first; a
                chain if left out.
        """
        after_token, after_pair = self._after_token, self._after_pair
        for row, (token, choice) in enumerate(zip(fed, chosen, strict=True)):
            parent = row - 1 if parents is None else parents[row]
            pair = (before if parent < 0 else fed[parent]) << _PAIR_BITS | token
            # Taken out first, so that the dictionary's order is that of the last use.
            old = after_pair.pop(pair, ())
            if top is not None:
                after_pair[pair] = _first(choice, top[row])
            else:
                after_pair[pair] = _first(choice, old)
            # Contexts differ here: what was right behind others of them is worth more than a second place.
            after_token[token] = _first(choice, after_token.get(token, ()))
        if len(after_pair) > MAX_PAIRS:
            self._after_pair = dict(list(after_pair.items())[MAX_PAIRS // 2 :])

    def after_pair(self, before: int, last: int) -> tuple[int, ...]:
        """Candidates behind two tokens, the likeliest first."""
        return self._after_pair.get(before << _PAIR_BITS | last, ())

    def after_token(self, last: int) -> tuple[int, ...]:
        """Candidates behind one token, the newest first."""
        return self._after_token.get(last, ())


def _first(choice: int, others: Sequence[int]) -> tuple[int, ...]:
    if others and others[0] == choice:
        return tuple(others[:TOP])
    return (choice, *[token for token in others if token != choice][: TOP - 1])
