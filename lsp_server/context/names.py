"""Identifiers in code, by their spelling alone: the same for every language."""

from __future__ import annotations

import re
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")

# Words that stand in any code, so that two texts which share them need not be alike.
_WORDS = (
    "abstract and as assert async await bool boolean break byte case catch char class const continue def "
    "default defer del delete do double elif else elsif end enum except export extends extern false final "
    "finally float for foreach from func function global goto if impl implements import in include init "
    "inline instanceof int interface is lambda let long loop map match mod module mut namespace new nil "
    "none nonlocal not null object or override package pass private protected pub public raise readonly "
    "ref require return self short signed sizeof static str string struct super switch template this "
    "throw throws trait true try type typedef typeof undefined union unless unsigned until use using var "
    "virtual void volatile when where while with yield None True False "
)
_COMMON = frozenset(_WORDS.split())

# Languages that use each other's definitions.
_GROUPS = {
    "javascriptreact": "javascript",
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "cpp": "c",
}


def identifiers(text: str) -> list[str]:
    """In order, with repetitions; keywords and names of one or two characters are left out."""
    return [name for name in _IDENTIFIER.findall(text) if name not in _COMMON]


def identifier_set(lines: Iterable[str]) -> frozenset[str]:
    """The identifiers of some lines."""
    return frozenset(identifiers("".join(lines)))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Shared elements over all elements; 0 for two empty sets."""
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def language_group(language_id: str) -> str:
    """The same for languages that use each other's definitions."""
    return _GROUPS.get(language_id, language_id)
