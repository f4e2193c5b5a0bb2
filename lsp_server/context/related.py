"""What a prompt may show beyond the plain window: names of the sources, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsp_server.prompts.fim import ContextFile

# Lines of the document itself, put at the top of the prefix where the window is cut.
LINE_SOURCES = ("scope", "imports")
# Pieces of other places, put before the document; the most telling one stands last.
FILE_SOURCES = ("recent", "accepted", "tabs", "definitions")
SOURCES = (*LINE_SOURCES, *FILE_SOURCES)

# Lines are reserved in steps, so that one line more does not move the window.
_RESERVE_STEP = 32
# Control tokens and the like around a piece.
_PIECE_TOKENS = 4
# A shorter rest of a piece says nothing.
_LEAST_LINES = 3


@dataclass(frozen=True)
class KeptLines:
    """Lines of the document that stay visible when the window begins below them.

    Attributes:
        first, stop: the lines they stand for; ``stop`` is exclusive.
        text: whole lines with ``\\n``.
        rank: the lower, the sooner they are kept.
        verbatim: ``text`` is the document's text, so a part of it may be shown.
    """

    first: int
    stop: int
    text: str
    rank: int
    verbatim: bool = True


@dataclass(frozen=True)
class Related:
    """What was gathered for a place.

    Attributes:
        files: pieces of other places, least related first.
        prefix_lines: candidates for the top of the prefix, in the order of the document.
        version: changes when the rest does; within one version the prompt's begin can stay the same.
    """

    files: tuple[ContextFile, ...] = ()
    prefix_lines: tuple[KeptLines, ...] = ()
    version: int = 0


NOTHING = Related()


@dataclass(frozen=True)
class Shares:
    """Tokens for both kinds of context. They depend on the settings alone, never on what was found: a
    piece that grows must not move the window."""

    lines: int
    files: int

    @classmethod
    def of(cls, sources: frozenset[str], tokens: int, total: int) -> Shares:
        """Shares of ``tokens``, and of no more than half of ``total``, the document's own room included."""
        tokens = max(0, min(tokens, total // 2))
        lines, files = bool(sources.intersection(LINE_SOURCES)), bool(sources.intersection(FILE_SOURCES))
        if lines and files:
            return cls(tokens // 2, tokens - tokens // 2)
        return cls(tokens if lines else 0, tokens if files else 0)


def fit_files(
    files: Sequence[ContextFile], limit: int, count: Callable[[str], int]
) -> tuple[tuple[ContextFile, ...], int]:
    """The pieces that fit into ``limit`` tokens, most related first, and the tokens they take.

    The piece that does not fit as a whole is cut at its end, between two lines. ``count`` gives the tokens
    of one line; their sum is close to the tokens of the whole.
    """
    kept: list[ContextFile] = []
    left = limit
    for file in reversed(files):
        room = left - count(file.path) - _PIECE_TOKENS
        lines: list[str] = []
        whole = file.text.splitlines(keepends=True)
        for line in whole:
            room -= count(line)
            if room < 0:
                break
            left = room
            lines.append(line)
        if len(lines) < min(_LEAST_LINES, len(whole)) or not lines:
            break
        kept.append(ContextFile(file.path, "".join(lines)))
        if len(lines) < len(whole):
            break
    kept.reverse()
    spent = sum(
        _PIECE_TOKENS + count(file.path) + sum(map(count, file.text.splitlines(keepends=True)))
        for file in kept
    )
    return tuple(kept), spent


def reserve_for(lines: Sequence[KeptLines], first_line: int, limit: int, count: Callable[[str], int]) -> int:
    """Tokens to keep free for the lines above ``first_line``, in steps, at most ``limit``."""
    chosen = _chosen(lines, first_line, limit, count)
    tokens = sum(_tokens(each.text, count) for each in chosen)
    return min(limit, -(-tokens // _RESERVE_STEP) * _RESERVE_STEP)


def fit_lines(lines: Sequence[KeptLines], first_line: int, limit: int, count: Callable[[str], int]) -> str:
    """The text of the lines above ``first_line`` that fit into ``limit`` tokens, in the document's order."""
    chosen = _chosen(lines, first_line, limit, count)
    return "".join(each.text for each in sorted(chosen, key=lambda each: each.first))


def _chosen(
    lines: Sequence[KeptLines], first_line: int, limit: int, count: Callable[[str], int]
) -> list[KeptLines]:
    chosen: list[KeptLines] = []
    for each in sorted(lines, key=lambda each: each.rank):
        above = _above(each, first_line)
        if above is None:
            continue
        limit -= _tokens(above.text, count)
        if limit < 0:
            # No gap is filled with something of less worth: it would come and go with one token.
            break
        chosen.append(above)
    return chosen


def _above(each: KeptLines, first_line: int) -> KeptLines | None:
    if each.first >= first_line:
        return None
    if each.stop <= first_line:
        return each
    if not each.verbatim:
        return None
    text = "".join(each.text.splitlines(keepends=True)[: first_line - each.first])
    return KeptLines(each.first, first_line, text, each.rank)


def _tokens(text: str, count: Callable[[str], int]) -> int:
    return sum(map(count, text.splitlines(keepends=True)))
