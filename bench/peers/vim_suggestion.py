"""What llama.vim shows of an answer (``s:fim_render`` of its ``autoload/llama.vim``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers.vim_context import is_blank


@dataclass(frozen=True)
class VimSuggestion:
    """A rendered answer.

    Attributes:
        text: to insert, "" if nothing is shown.
        start, end: columns of the cursor's line that it replaces.
        reason: why nothing is shown.
        shown: its lines as the plugin keeps them, the last one with the rest of the cursor's line.
        can_accept: the plugin takes it for something to show; true also for "" in front of text.
    """

    text: str
    start: int
    end: int
    reason: str
    shown: tuple[str, ...]
    can_accept: bool


def render(content: str, lines: Sequence[str], line: int, column: int) -> VimSuggestion:
    """Trim an answer, and drop it if it repeats what follows the cursor."""
    answer = content.split("\n")
    while len(answer) > 1 and not answer[-1]:
        answer.pop()
    current = lines[line]
    if is_blank(current):
        # The prompt began at column 0, so the answer brings its own indentation.
        blanks = re.match(r"[ \t]*", answer[0])
        lead = min(len(blanks[0]) if blanks else 0, len(current))
        current, answer[0] = answer[0][:lead], answer[0][lead:]
    left, right = current[:column], current[column:]
    reason = "" if content.strip("\n") else "empty"
    repeated = reason or _repetition(answer, left, right, lines, line)
    if repeated:
        reason, answer = repeated, [""]
    shown = (*answer[:-1], answer[-1] + right)
    can_accept = reason != "empty" and not is_blank("".join(shown))
    text = "\n".join(answer)
    if not reason and is_blank(text.replace("\n", "")):
        reason, text = "blank", ""
    if current == lines[line]:
        return VimSuggestion(text, column, column, reason, shown, can_accept)
    # The blanks that were typed are more than the answer's own, which replace them.
    whole = left + text if text else ""
    return VimSuggestion(whole, 0, len(lines[line]), reason, shown, can_accept)


def _repetition(answer: list[str], left: str, right: str, lines: Sequence[str], line: int) -> str:
    """Which text below or behind the cursor the answer repeats, "" if none."""
    below = list(lines[line + 1 :])
    if len(answer) > 1 and not answer[0] and answer[1:] == below[: len(answer) - 1]:
        return "repeats the next lines"
    if len(answer) == 1 and answer[0] and answer[0] == right:
        return "repeats the rest of the line"
    # As in the plugin, the last line counts as the next one even if it is blank.
    following = next((i for i, text in enumerate(below) if not is_blank(text)), len(below) - 1)
    if following < 0 or left + answer[0] != below[following]:
        return ""
    after = below[following + 1 :]
    if len(answer) == 1:
        return "repeats the next line"
    if len(answer) == 2 and after and after[0].startswith(answer[1]):
        return "repeats the next lines"
    if len(answer) > 2 and answer[1:] == after[: len(answer) - 1]:
        return "repeats the next lines"
    return ""
