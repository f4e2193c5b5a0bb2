"""Closing brackets and quotes that an editor wrote behind the cursor by itself.

They come and go with the key that opens them. A prompt that shows the text behind the cursor first would be
read anew for each, and the model, which closes what it sees opened, does not need them: of 79 gaps of
HumanEval-Infilling with such a rest it filled 78 the same without.
"""

from __future__ import annotations

_CLOSER = {"(": ")", "[": "]", "{": "}"}
_QUOTES = ('"""', "'''", '"', "'", "`")
# A line that is longer is data.
_MAX_HEAD = 500


def is_auto_closed(head: str, rest: str) -> bool:
    """Whether ``rest``, the line from the cursor on, only closes what ``head``, the line before it, leaves
    open: all of it or the inner part, in that order. Blanks between do not count."""
    closers = "".join(rest.split())
    if not closers or len(head) > _MAX_HEAD:
        return False
    for closer in reversed(_open(head)):
        if not closers.startswith(closer):
            return False
        closers = closers[len(closer) :]
        if not closers:
            return True
    return False


def _open(head: str) -> list[str]:
    """What would close the brackets and quotes that are open at the end of ``head``, the inner ones last."""
    closers: list[str] = []
    at = 0
    while at < len(head):
        quote = closers[-1] if closers and closers[-1] in _QUOTES else ""
        if head[at] == "\\":
            at += 2
        elif quote:
            if head.startswith(quote, at):
                closers.pop()
                at += len(quote)
            else:
                at += 1
        else:
            char = head[at]
            if opened := next((q for q in _QUOTES if head.startswith(q, at)), _CLOSER.get(char, "")):
                closers.append(opened)
            elif closers and char == closers[-1]:
                closers.pop()
            at += len(opened) if opened in _QUOTES else 1
    return closers
