"""A finger on the text that is being copied, which stays on it across small changes.

An edit or a variation copies, changes a token or two, and copies on. The suffix index finds the place
again after two equal tokens; the finger is already there. After EfficientEdit (arXiv 2506.02780), which
re-aligns to the remaining original text after a change.
"""

from __future__ import annotations

WINDOW = 24  # tokens ahead in which the text may go on after something was left out
PATIENCE = 4  # tokens in a row that do not fit before the finger is lifted
WAIT = 16  # tokens before a copy that was announced, e.g. a fence and the name of a language


class SourcePointer:
    """Follows a sequence that copies from an earlier part of itself.

    Attributes:
        position: index of the token that is expected next, None if there is no finger on anything.
        run: tokens that have agreed since the last change.
    """

    def __init__(self, sequence: list[int]) -> None:
        """``sequence`` is shared with its owner, who appends to it."""
        self._sequence = sequence
        self.position: int | None = None
        self.run = 0
        self._misses = 0
        self._wait = 0

    @property
    def waiting(self) -> bool:
        """Whether a copy is expected that has not begun yet."""
        return self._wait > 0

    def place(self, position: int, run: int) -> None:
        """Put the finger somewhere, because ``run`` tokens agree there."""
        self.position, self.run, self._misses, self._wait = position, run, 0, 0

    def await_copy(self, position: int) -> None:
        """Put the finger where a copy is expected to begin, perhaps after some other tokens."""
        self.place(position, 0)
        self._wait = WAIT

    def follow(self, token: int) -> None:
        """The sequence got another token; call it before the token is appended."""
        at = self.position
        if at is None:
            return
        sequence = self._sequence
        if at < len(sequence) and sequence[at] == token:
            self.place(at + 1, self.run + 1)
            return
        if self._wait > 0:
            self._wait -= 1
            if self._wait == 0:
                self.position = None
            return
        self._misses += 1
        if self._misses > PATIENCE or at >= len(sequence):
            self.position = None
            return
        self.run = 0
        try:
            # Something was left out: the text goes on behind its next occurrence.
            self.position = sequence.index(token, at + 1, at + 1 + WINDOW) + 1
        except ValueError:
            self.position = at + 1  # something was replaced
