"""Patterns in the manner of gitignore (git's manual page gitignore(5)).

Compared with ``git check-ignore`` in tests. The library pathspec was tried instead: it excludes directories
that ``a/**`` does not, so that ``!a/keep`` has no effect, knows no ``[[:digit:]]``, and raises on ``[z-a]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_POSIX_CLASS = re.compile(r"\[:([a-z]+):\]")
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~\\"),
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


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
            if self.decide("/".join(parts[:depth]), is_directory=depth < len(parts)):
                return True
        return False

    def decide(self, path: str, *, is_directory: bool) -> bool | None:
        """What the last pattern that matches ``path`` itself says: excluded or not; None if none does."""
        for pattern in reversed(self._patterns):
            if pattern.directories_only and not is_directory:
                continue
            if pattern.regex.fullmatch(path):
                return not pattern.negated
        return None


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
            # Only a whole component of two stars crosses directories.
            whole = (at == 0 or glob[at - 1] == "/") and at + 2 == len(glob)
            out.append(".+" if whole else "[^/]*")
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
            out.append(f"(?!/)[{_class_body(glob[at + 1 : end])}]")
            at = end + 1
        else:
            out.append(re.escape(glob[at]))
            at += 1
    return "".join(out)


def _class_body(body: str) -> str:
    """What stands between the brackets, in the words of ``re``."""
    negated = body.startswith(("!", "^"))
    if negated:
        body = body[1:]
    # A single bracket inside a class would make ``re`` warn of sets within sets.
    pieces = _POSIX_CLASS.split(body)
    for at, piece in enumerate(pieces):
        pieces[at] = _POSIX.get(piece, "") if at % 2 else piece.replace("\\", "\\\\").replace("[", "\\[")
    return "^" * negated + "".join(pieces)


def _class_end(glob: str, start: int) -> int:
    """Index of the ``]`` that closes the class opened at ``start``, or -1."""
    at = start + 1
    if glob.startswith(("!", "^"), at):
        at += 1
    first = at
    while at < len(glob):
        if named := _POSIX_CLASS.match(glob, at):
            at = named.end()
        elif glob[at] == "]" and at > first:
            return at
        else:
            at += 1
    return -1
