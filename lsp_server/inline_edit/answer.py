"""Reading an answer as it streams: the lines of code in it, without fences and chatter."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[^`]*")
# How instruct models begin a sentence about code.
_CHATTER = re.compile(
    r"(?:here(?:'s| is| are)|sure|certainly|of course|okay|ok|below|note|explanation|answer|changed code"
    r"|the (?:updated|changed|modified|following)|i (?:have|will|'ve)|to \w+ (?:the|this)|this code"
    r")\b.*",
    re.IGNORECASE,
)


class AnswerReader:
    """Turns pieces of text into whole lines of code.

    The prompt may have opened a fence already, so the answer begins with code; a model that opens one of its
    own, or speaks first, is understood too. All that follows the closing fence is dropped.

    Args:
        old: the lines that were shown: one that stands there is no chatter.
        fence: the fence of the prompt; fences that are shorter belong to the code.
    """

    def __init__(self, old: Iterable[str], fence: str = "```") -> None:
        self._old = {line.strip() for line in old}
        self._fence = fence
        self._rest = ""
        self._held: list[str] = []  # chatter, if a fence follows
        self._spoken = False  # something like chatter was held back
        self._begun = False
        self._blank = 0  # blank lines that only count if code follows
        self.done = False

    @property
    def no_code(self) -> bool:
        """The answer was chatter without a fence. Meaningful once `finish` was called."""
        return not self._begun

    def feed(self, text: str) -> list[str]:
        """The lines that ``text`` completes."""
        self._rest += text
        # A \r at the end may be half of a line end.
        keep = "\r" if self._rest.endswith("\r") else ""
        whole = self._rest[: len(self._rest) - len(keep)].replace("\r\n", "\n").replace("\r", "\n")
        *lines, last = whole.split("\n")
        self._rest = last + keep
        return self._take(lines)

    def finish(self) -> list[str]:
        """The answer has ended; its last lines."""
        last, self._rest = self._rest.rstrip("\r"), ""
        lines = self._take([last]) if last else []
        self.done = True
        return lines

    def _take(self, lines: Iterable[str]) -> list[str]:
        out: list[str] = []
        for line in lines:
            if self.done:
                break
            out += self._line(line)
        return out

    def _line(self, line: str) -> list[str]:
        if self._is_fence(line):
            if self._begun:
                self.done = True
            # What was said before an opening fence is no code.
            self._held.clear()
            self._spoken = False
            self._blank = 0
            return []
        if not line.strip():
            # Also in front: an answer that begins with an empty line means the same without.
            self._blank += self._begun
            return []
        if not self._begun and (self._spoken or self._is_chatter(line)):
            self._spoken = True
            self._held.append(line)
            return []
        self._begun = True
        blank, self._blank = self._blank, 0
        return [*([""] * blank), line]

    def _is_fence(self, line: str) -> bool:
        found = _FENCE.fullmatch(line)
        if found is None or line.strip() in self._old:
            return False
        return found[1][0] == self._fence[0] and len(found[1]) >= len(self._fence)

    def _is_chatter(self, line: str) -> bool:
        text = line.strip()
        return text not in self._old and _CHATTER.fullmatch(text) is not None


def fence_for(lines: Iterable[str]) -> str:
    """A fence that does not occur in the lines."""
    longest = max((len(run) for line in lines for run in re.findall(r"`{3,}", line)), default=2)
    return "`" * max(3, longest + 1)
