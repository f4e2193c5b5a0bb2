"""A piece of another place with where it is from, so that it can be judged before it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.prompts.fim import ContextFile


@dataclass(frozen=True)
class Piece:
    """Attributes:
    uri: of the document it is from.
    shown: as the prompt will have it.
    first, stop: the lines of that document, for telling whether two pieces show the same.
    """

    uri: str
    shown: ContextFile
    first: int
    stop: int

    def overlaps(self, uri: str, first: int, stop: int) -> bool:
        """Whether it shows a line of these."""
        return uri == self.uri and first < self.stop and self.first < stop


@dataclass(frozen=True)
class View:
    """The lines around a cursor.

    Attributes:
        first, stop: what the prompt's window shows, by an estimate: the exact one depends on the tokenizer.
        near_first, near_stop: what the code at the cursor is about.
    """

    first: int
    stop: int
    near_first: int
    near_stop: int


_NEAR_ABOVE, _NEAR_BELOW = 20, 10
# Code has 3 to 4 characters a token.
_CHARS_PER_TOKEN = 3
_SUFFIX_TOKENS = 128


def view(lines: tuple[str, ...], line: int, tokens: int) -> View:
    """The lines around ``line`` that a window of ``tokens`` tokens shows, and the nearest of them.

    Nothing of ``line`` itself counts, so that typing on it changes nothing.
    """
    first, room = line, max(0, tokens - _SUFFIX_TOKENS) * _CHARS_PER_TOKEN
    while first > 0 and room > len(lines[first - 1]):
        first -= 1
        room -= len(lines[first])
    stop, room = line + 1, min(_SUFFIX_TOKENS, tokens // 4) * _CHARS_PER_TOKEN
    while stop < len(lines) and room > len(lines[stop]):
        room -= len(lines[stop])
        stop += 1
    near = max(0, line - _NEAR_ABOVE), min(len(lines), line + 1 + _NEAR_BELOW)
    return View(first, stop, *near)
