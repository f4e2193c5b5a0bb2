"""Token healing: generating so that the text begins with given characters, whatever the token borders.

A cursor stands where the user stopped typing, which is often inside what would be one token ("retur", a
blank before a word, "):" before a newline). The prompt then ends with tokens the model has rarely seen
there. So the last piece of the text is taken out of the prompt and the answer is constrained to begin with
it: only tokens that agree with the bytes still missing may be chosen, and the model chooses among them.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

import torch

from inference.tokenizer import Tokenizer


class Vocabulary:
    """The tokens of a vocabulary by their bytes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Takes about 0.2 s for 150 000 tokens."""
        tokens = sorted((tokenizer.token_bytes(id), id) for id in range(tokenizer.vocab_size))
        # Control tokens stand for no bytes.
        first = bisect_left(tokens, (b"\0", -1))
        self._bytes = [token for token, _ in tokens[first:]]
        self._ids = [id for _, id in tokens[first:]]
        self.beginning = lru_cache(maxsize=256)(self._beginning)

    def _beginning(self, text: bytes) -> torch.Tensor:
        """Ids of the tokens that a text beginning with ``text`` (not empty) may begin with, int64."""
        ids: list[int] = []
        for size in range(1, len(text)):
            ids += self._equal(text[:size])
        start = bisect_left(self._bytes, text)
        stop = bisect_left(self._bytes, _next(text)) if text.strip(b"\xff") else len(self._bytes)
        return torch.tensor(ids + self._ids[start:stop], dtype=torch.int64)

    def _equal(self, text: bytes) -> list[int]:
        at = bisect_left(self._bytes, text)
        found = []
        while at < len(self._bytes) and self._bytes[at] == text:
            found.append(self._ids[at])
            at += 1
        return found


class Healing:
    """What is still missing of the characters that an answer must begin with.

    Attributes:
        missing: bytes; b"" when the answer is free.
    """

    def __init__(self, text: str, vocabulary: Vocabulary, tokenizer: Tokenizer) -> None:
        self.missing = text.encode()
        self._hidden = len(text)  # characters that stand before the cursor already
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer

    def constrain(self, logits: torch.Tensor) -> torch.Tensor:
        """One row of logits [1, vocab] with -inf for all tokens that do not agree."""
        allowed = self._vocabulary.beginning(self.missing).to(logits.device)
        allowed = allowed[allowed < logits.shape[-1]]  # added tokens may lie behind the model's own
        if not len(allowed):
            self.missing = b""  # a vocabulary without all bytes; the text is cut by length all the same
            return logits
        constrained = torch.full_like(logits, -torch.inf)
        constrained[0, allowed] = logits[0, allowed]
        return constrained

    def took(self, token: int) -> None:
        """A token was chosen."""
        self.missing = self.missing[len(self._tokenizer.token_bytes(token)) :]

    def visible(self, piece: str) -> str:
        """The part of decoded text that stands behind the cursor."""
        shown = piece[self._hidden :]
        self._hidden -= len(piece) - len(shown)
        return shown


def _next(text: bytes) -> bytes:
    """The first bytes behind all that begin with ``text``, which is not only 0xff."""
    kept = text.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))
