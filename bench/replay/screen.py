"""What stands on the screen beside the text: the ghost text, how much of it is right, and who takes it."""

from __future__ import annotations

import re
from typing import Literal

from bench.peers.base import Reply

AcceptPolicy = Literal["whole", "line", "word", "none"]
ACCEPT_POLICIES: tuple[AcceptPolicy, ...] = ("whole", "line", "word", "none")

# Nobody reaches for a key to save fewer.
MIN_ACCEPTED = 3

_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)")


def ghost_text(reply: Reply, line: str, column: int) -> str:
    """What a suggestion would insert at the cursor; "" if it is none, or would change text that stands there.

    An item may replace text of the line that it repeats: what stands before the cursor, the rest behind it.
    """
    if reply.outcome != "shown" or not reply.start <= column <= reply.end <= len(line):
        return ""
    head, rest = line[reply.start : column], line[column : reply.end]
    text = reply.text
    if not text.startswith(head) or not text.endswith(rest) or len(text) < len(head) + len(rest):
        return ""
    return text[len(head) : len(text) - len(rest)]


def right_chars(text: str, remaining: str) -> int:
    """Characters at the beginning of ``text`` that are what is to be typed next."""
    right = 0
    for shown, wanted in zip(text, remaining, strict=False):
        if shown != wanted:
            break
        right += 1
    return right


def is_right(text: str, remaining: str) -> bool:
    """Whether the whole of ``text``, blanks at its end aside, is what is to be typed next."""
    kept = text.rstrip()
    return bool(kept) and remaining.startswith(kept)


def portion(policy: AcceptPolicy, text: str, remaining: str) -> str:
    """What a user with this policy takes of a suggestion, "" if nothing.

    "whole": all of it, if all is right. "line": all of it if it is right, else its first line if that is
    right. "word": its first word (with the blanks before it) if that is right. A user who takes lines
    or words knows what is to come, so that a right first line counts although later ones are wrong.
    """
    if policy == "none":
        return ""
    whole = text.rstrip()
    candidates = [whole]
    if policy == "line":
        candidates.append(text.partition("\n")[0].rstrip())
    elif policy == "word":
        match = _WORD.match(text)
        candidates = [match.group()] if match else []
    for candidate in candidates:
        if len(candidate.strip()) >= MIN_ACCEPTED and remaining.startswith(candidate):
            return candidate
    return ""
