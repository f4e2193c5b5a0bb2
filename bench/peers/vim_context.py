"""What llama.vim sends of a document, and the keys under which it remembers answers.

Facts from the plugin's ``autoload/llama.vim`` (``s:fim_ctx_local``, ``llama#fim``,
``s:fim_try_hint``), read in its versions of 2025. Lengths that Vim counts in bytes are bytes here.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LINES_BEFORE = 256
LINES_AFTER = 64
CACHE_KEYS = 250
LOOK_BACK = 128  # characters typed since a remembered answer
TRIMMED_LINES = 3

_CURSOR = "Î"  # stands between the two halves of what is hashed


@dataclass(frozen=True)
class VimContext:
    """One request's view of the document.

    Attributes:
        prefix: the lines above.
        middle: the cursor's line left of it, "" if the line is blank.
        suffix: the rest of the line and the lines below.
        right: the rest of the line alone.
        indent: characters that the cursor's line begins with and the answer's lines must keep.
    """

    prefix: str
    middle: str
    suffix: str
    right: str
    indent: int

    def cache_keys(self) -> list[bytes]:
        """Its own key first, then those without the first 1 to 3 lines, which a scrolled view has."""
        found = [_key(self.prefix + self.middle, self.suffix)]
        rest = self.prefix
        for _ in range(TRIMMED_LINES):
            rest = rest.partition("\n")[2]
            if not rest:
                break
            found.append(_key(rest + self.middle, self.suffix))
        return found

    def keys_behind(self) -> Iterator[tuple[str, bytes]]:
        """What was typed last, and the key before that; from 128 to 1 characters back."""
        text = self.prefix + self.middle
        count = min(LOOK_BACK, len(text))
        # One character more for each key: hashing the whole text 128 times would show in the latency.
        before = hashlib.sha256(_encoded(text[:-count]))
        for back in range(count, 0, -1):
            key = before.copy()
            key.update(_encoded(_CURSOR + self.suffix))
            yield text[-back:], key.digest()
            before.update(_encoded(text[-back]))


def context_at(lines: Sequence[str], line: int, column: int) -> VimContext:
    """At the cursor."""
    current = lines[line]
    blank = is_blank(current)
    left, right = ("", "") if blank else (current[:column], current[column:])
    return _context(
        lines[max(line - LINES_BEFORE, 0) : line],
        left,
        right,
        lines[line + 1 : line + 1 + LINES_AFTER],
        0 if blank else _indent(current),
    )


def context_after(lines: Sequence[str], line: int, shown: Sequence[str], indent: int) -> VimContext:
    """Behind a suggestion that is shown in a line, as if it had been accepted.

    ``shown`` are its lines, the last one with the rest of the cursor's line. Like the plugin, this takes the
    cursor's whole line and adds the first of them, which is right where nothing follows the cursor.
    """
    joined = [lines[line] + shown[0], *shown[1:]]
    above = list(lines[max(line - LINES_BEFORE + len(shown) - 1, 0) : line]) + joined[:-1]
    return _context(above, joined[-1], "", lines[line + 1 : line + 1 + LINES_AFTER], indent)


def is_blank(text: str) -> bool:
    """Vim's ``^\\s*$``: only spaces and tabs."""
    return not text.strip(" \t")


class ResultCache:
    """Remembered answers, the least recently used dropped first."""

    def __init__(self, size: int = CACHE_KEYS) -> None:
        self._size = size
        self._answers: OrderedDict[bytes, str] = OrderedDict()

    def put(self, keys: Sequence[bytes], content: str) -> None:
        """Remember an answer under all of its keys."""
        for key in keys:
            self._answers[key] = content
            self._answers.move_to_end(key)
            if len(self._answers) > self._size:
                self._answers.popitem(last=False)

    def get(self, key: bytes) -> str | None:
        """An answer, None if there is none."""
        content = self._answers.get(key)
        if content is not None:
            self._answers.move_to_end(key)
        return content

    def typed_along(self, context: VimContext) -> str | None:
        """The longest rest of an answer given up to 128 characters ago whose beginning was typed since."""
        best = ""
        if self._answers:
            for typed, key in context.keys_behind():
                content = self.get(key)
                if content is not None and content.startswith(typed):
                    best = max(best, content[len(typed) :], key=len)
        return best or None

    def clear(self) -> None:
        """Forget everything."""
        self._answers.clear()


def _context(above: Sequence[str], left: str, right: str, below: Sequence[str], indent: int) -> VimContext:
    suffix = "\n".join((right, "\n".join(below), ""))
    return VimContext("\n".join(above) + "\n", left, suffix, right, indent)


def _indent(text: str) -> int:
    found = re.match(r"[ \t]*", text)
    return len(found[0]) if found else 0


def _key(before: str, after: str) -> bytes:
    return hashlib.sha256(_encoded(before + _CURSOR + after)).digest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
