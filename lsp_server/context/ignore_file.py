"""Patterns in the manner of gitignore."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Pattern:
    """One compiled line; ``negated`` re-includes what an earlier line excluded."""

    regex: re.Pattern[str]
    negated: bool
    directories_only: bool


class IgnorePatterns:
    """An ordered list of patterns; the last one that matches decides.

    Supported: comments, ``!``, leading and inner ``/`` (anchored at the root), trailing ``/``
    (directories), ``*``, ``?``, ``[...]``, ``**``. As in git, nothing below an excluded directory can
    be re-included.
    """

    def __init__(self, lines: Iterable[str], *, ignore_case: bool = False) -> None:
        compiled = (_compile(line, ignore_case) for line in lines)
        self._patterns = tuple(pattern for pattern in compiled if pattern is not None)

    def matches(self, path: str) -> bool:
        """Whether the file ``path`` (relative to the root, with ``/``) is excluded."""
        parts = [part for part in path.split("/") if part]
        for depth in range(1, len(parts) + 1):
            if self._decide("/".join(parts[:depth]), is_directory=depth < len(parts)):
                return True
        return False

    def _decide(self, path: str, *, is_directory: bool) -> bool:
        for pattern in reversed(self._patterns):
            if pattern.directories_only and not is_directory:
                continue
            if pattern.regex.fullmatch(path):
                return not pattern.negated
        return False


@lru_cache(maxsize=1024)
def _compile(line: str, ignore_case: bool) -> Pattern | None:
    text = line.rstrip("\r\n")
    if not text.endswith("\\ "):
        text = text.rstrip(" ")
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    if negated:
        text = text[1:]
    if text.startswith(("\\#", "\\!")):
        text = text[1:]
    directories_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.lstrip("/")
    if not text:
        return None
    source = _translate(text) if anchored else "(?:.*/)?" + _translate(text)
    try:
        regex = re.compile(source, re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    except re.error:
        # An unreadable class such as "[z-a]": exclude the literal name rather than nothing.
        regex = re.compile("(?:.*/)?" + re.escape(text), re.DOTALL)
    return Pattern(regex, negated, directories_only)


def _translate(glob: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            out.append(".*")
            at += 2
        elif glob[at] == "*":
            out.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            out.append("[^/]")
            at += 1
        elif glob[at] == "\\" and at + 1 < len(glob):
            out.append(re.escape(glob[at + 1]))
            at += 2
        elif glob[at] == "[" and (end := _class_end(glob, at)) > 0:
            body = glob[at + 1 : end].replace("\\", "\\\\")
            body = "^" + body[1:] if body.startswith("!") else body
            out.append(f"(?!/)[{body}]")
            at = end + 1
        else:
            out.append(re.escape(glob[at]))
            at += 1
    return "".join(out)


def _class_end(glob: str, start: int) -> int:
    """Index of the ``]`` that closes the class opened at ``start``, or -1."""
    first = start + 1
    if glob.startswith("!", first):
        first += 1
    return glob.find("]", first + 1)
