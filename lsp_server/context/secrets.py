"""Secrets in a text: keys and tokens by their published formats, and values given to names like ``password``.

Two kinds. A private key covers many lines and makes its whole document one that must not be read. A token is
a span of one line; its characters are replaced, one for one, so that every line and column stays where it is.
Everything looks at one line at a time, in time linear in its length. Formats: RFC 7468 and 4880 (armour),
RFC 7519 (JWT), the issuers' documentation for the rest.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

NEUTRAL = "x"
# For characters that take two, three and four bytes in UTF-8: columns are counted in bytes or in units of
# UTF-16, which must not change either.
_WIDE = ((0x80, NEUTRAL), (0x800, "\u0445"), (0x10000, "\uff58"), (0x110000, "\U0001d431"))
# Further than this behind the first line of a key no part of it is looked for.
KEY_LINES = 12

_SHORTEST = 16
_LONGEST = 4096

# Cheap and wide: most lines of code hold none of these and cost one search.
_HINT = re.compile(
    r"AKIA|ASIA|gh[oprsu]_|github_|glpat-|xox|hooks\.slack|[sr]k_live_|sk-|AIza|GOCSPX-|ya29\.|eyJ|npm_|pypi-"
    r"|hf_|SG\.|dop_v1_|dckr_|shp(?:at|ss|ca)_|AGE-SECRET|AccountKey|SharedAccess|Q~|://"
    r"|[Pp][Aa][Ss][Ss]|[Pp][Ww][Dd]|[Ss][Ee][Cc][Rr]|[Tt][Oo][Kk][Ee][Nn]|[Kk][Ee][Yy]|[Cc]red|[Bb]earer"
    r"|CRED|BEARER|[Aa]uth"
)

# In lower case, at least one in whatever `_HINT` finds.
_HINTS = (
    *("akia", "asia", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_", "glpat-", "xox", "hooks.slack"),
    *("sk_live_", "rk_live_", "sk-", "aiza", "gocspx-", "ya29.", "eyj", "npm_", "pypi-", "hf_", "sg."),
    *("dop_v1_", "dckr_", "shpat_", "shpss_", "shpca_", "age-secret", "accountkey", "sharedaccess", "q~"),
    *("://", "pass", "pwd", "secr", "token", "key", "cred", "bearer", "auth"),
)

# Each has one group or none: the secret itself.
_FORMATS = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"
    r"|gh[oprsu]_[A-Za-z0-9]{36,255}"
    r"|github_pat_[A-Za-z0-9_]{60,255}"
    r"|glpat-[A-Za-z0-9_-]{20,300}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{16,255}"
    r"|[sr]k_live_[A-Za-z0-9]{20,255}"
    r"|sk-[A-Za-z0-9_-]{32,255}"
    r"|AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"
    r"|GOCSPX-[A-Za-z0-9_-]{28}"
    r"|ya29\.[A-Za-z0-9_-]{40,2048}"
    r"|eyJ[A-Za-z0-9_-]{12,4096}\.eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{16,4096}"
    r"|npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"
    r"|pypi-[A-Za-z0-9_-]{60,1024}"
    r"|hf_[A-Za-z0-9]{34}(?![A-Za-z0-9])"
    r"|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"
    r"|dop_v1_[a-f0-9]{64}"
    r"|dckr_pat_[A-Za-z0-9_-]{27}"
    r"|shp(?:at|ss|ca)_[a-fA-F0-9]{32}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{58}"
    r"|[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"
    r"|hooks\.slack\.com/services/(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,32})"
    r"|(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,100}={0,2})"
    r")"
)
_URL = re.compile(r"://[^\s/:@'\"]{1,64}:([^\s/:@'\"]{8,128})@[\w.\[-]")
_BEARER = re.compile(r"\b(?:[Bb]earer|BEARER|[Bb]asic)\s{1,4}([A-Za-z0-9._~+/-]{20,4096}={0,2})")
_ASSIGNED = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?"
    r"|(?:api|access|auth|account|encryption|signing|private|master|client)[_.-]?key)"
    r"[\w.-]{0,24}[\"'\]]{0,2}\s{0,16}(?::=|=>|[=:](?![=:]))\s{0,16}"
    r"(?:[bru]{0,2}(?P<quote>[\"'`])(?P<quoted>[!-~]{12,512}?)(?P=quote)|(?P<bare>[A-Za-z0-9+/_=-]{20,512})\s*$)",
    re.IGNORECASE,
)

_PLACEHOLDER = re.compile(
    r"example|change_?me|xxxx|placeholder|dummy|fake|sample|your|redacted|insert|replace|\*\*\*|\.\.\."
    r"|test|todo|0123456|1234567|abcdef|deadbeef|password|^[<$%{(@]|[<{]{1}\w+[>}]|\$\{|\{\{|%\(",
    re.IGNORECASE,
)
# In a token of 30 random characters such as these stand now and then by chance.
_LONG_PLACEHOLDER = re.compile(
    r"example|change_?me|xxxxx|placeholder|dummy|your|redacted|123456789|abcdefgh|\.\.\.", re.IGNORECASE
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_NO_VALUE = re.compile(r"[()\[\]{}<>;,\\|]|://|^[./~]|^--")

_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|^PuTTY-User-Key-File-\d: ")
_KEY_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Encryption|Public-Lines): "
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}")
# Indentation, quotes, comments and what joins strings.
_AROUND_BASE64 = " \t\r\n\"'#/*+,;\\"

# In a longer line only the neighbourhood of an edit is looked at again, this far on either side.
LONG_LINE = 8192
_AROUND_EDIT = 512


class RedactedLine(str):
    """A line whose secrets are replaced.

    Attributes:
        spans: (start, stop) in characters of each.
    """

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, line: str, spans: Sequence[tuple[int, int]]) -> RedactedLine:
        """``line`` with the characters of ``spans``, sorted and apart from each other, replaced."""
        pieces: list[str] = []
        end = 0
        for start, stop in spans:
            pieces += (line[end:start], _neutral(line[start:stop]))
            end = stop
        redacted = cls("".join(pieces) + line[end:])
        redacted.spans = tuple(spans)
        return redacted


def _neutral(secret: str) -> str:
    """As many characters, of which each takes as much room in every encoding."""
    if secret.isascii():
        return NEUTRAL * len(secret)
    return "".join(next(sign for end, sign in _WIDE if ord(char) < end) for char in secret)


def redact(line: str) -> str:
    """``line`` itself if it holds no token, else a `RedactedLine` of the same length."""
    spans = token_spans(line)
    return RedactedLine.of(line, spans) if spans else line


def redact_lines(lines: Sequence[str]) -> list[str]:
    """As ``redact`` for each line, with one search for all of them: most lines of code hold no hint."""
    text = "".join(lines)
    folded = text.lower()
    if len(folded) != len(text):  # a letter that becomes two has moved what is behind it
        return list(map(redact, lines))
    starts = [0, *accumulate(map(len, lines))]
    hinted: set[int] = set()
    for hint in _HINTS:
        at = folded.find(hint)
        while at >= 0:
            number = bisect_right(starts, at) - 1
            hinted.add(number)
            at = folded.find(hint, starts[number + 1])
    return [redact(line) if number in hinted else line for number, line in enumerate(lines)]


def redact_edited(line: str, before: str, start: int, after: str, stop: int) -> str:
    """As ``redact(line)``, searching only around an edit.

    Args:
        before: redaction of the line that the edit began in; ``line`` has its first ``start`` characters.
        after: redaction of the line that the edit ended in; ``line`` ends with what it has from ``stop`` on.
    """
    shift = len(line) - len(after)
    old_head = before.spans if isinstance(before, RedactedLine) else ()
    old_tail = after.spans if isinstance(after, RedactedLine) else ()
    first, last = max(0, start - _AROUND_EDIT), min(len(line), stop + shift + _AROUND_EDIT)
    first = min([first, *(low for low, high in old_head if low < first < high)])
    last = max([last, *(high + shift for low, high in old_tail if low + shift < last < high + shift)])
    spans = [span for span in old_head if span[1] <= first]
    spans += [(low + first, high + first) for low, high in token_spans(line[first:last])]
    spans += [(low + shift, high + shift) for low, high in old_tail if low + shift >= last]
    return RedactedLine.of(line, spans) if spans else line


def secrets_in(line: str) -> int:
    """How many secrets are replaced in a redacted line."""
    return len(line.spans) if isinstance(line, RedactedLine) else 0


def inside(line: str, column: int) -> bool:
    """Whether ``column`` (in characters) of a redacted line is within a secret or at its end or start."""
    return isinstance(line, RedactedLine) and any(start <= column <= stop for start, stop in line.spans)


def token_spans(line: str) -> list[tuple[int, int]]:
    """(start, stop) of each token in ``line``, sorted, without overlaps."""
    if len(line) < _SHORTEST or not _HINT.search(line):
        return []
    found: list[tuple[int, int]] = []
    for match in _FORMATS.finditer(line):
        group = match.lastindex or 0
        if _random(match.group(group), known=True):
            found.append(match.span(group))
    for pattern in (_URL, _BEARER):
        found += [match.span(1) for match in pattern.finditer(line) if _random(match.group(1))]
    for match in _ASSIGNED.finditer(line):
        group_name = "quoted" if match.group("quoted") else "bare"
        value = match.group(group_name)
        if _random(value, bare=group_name == "bare"):
            found.append(match.span(group_name))
    return _merged(found)


def has_private_key(lines: Sequence[str], first: int = 0, stop: int | None = None) -> bool:
    """Whether a private key begins in ``lines[first:stop]``.

    Its armour alone is none: programs that read keys name it. Lines of base64, in quotes or comments too,
    must follow, or stand behind it as in a JSON file.
    """
    for at in range(first, len(lines) if stop is None else min(stop, len(lines))):
        line = lines[at]
        if "-----BEGIN " not in line and not line.startswith("PuTTY"):
            continue
        begin = _KEY_BEGIN.search(line)
        if begin and (_key_body(line[begin.end() : begin.end() + _LONGEST]) or _body_below(lines, at)):
            return True
    return False


def _body_below(lines: Sequence[str], at: int) -> bool:
    for line in lines[at + 1 : at + 1 + KEY_LINES]:
        head = line[:_LONGEST]
        if _key_body(head):
            return True
        text = head.strip(_AROUND_BASE64)
        if text and not _KEY_HEADER.match(text) and not _BASE64.match(text):
            return False
    return False


def _key_body(text: str) -> bool:
    """Whether a line holds base64 as of a key, and little else."""
    match = _BASE64.search(text)
    if match is None or entropy(match.group()) < 3.0 or not _mixed(match.group()):
        return False
    return "\\n" in text or len(text[: match.start()].strip(_AROUND_BASE64)) <= 4


def entropy(text: str) -> float:
    """Shannon entropy of the characters of ``text`` in bits each."""
    length = len(text)
    return -sum(count / length * math.log2(count / length) for count in Counter(text).values())


def _random(value: str, *, known: bool = False, bare: bool = False) -> bool:
    """Whether ``value`` looks drawn at random and not written by a person.

    Args:
        known: it has the form of an issuer's token.
        bare: it stands without quotes, where a name or an expression might.
    """
    if known:
        # Class names of style sheets begin like keys of OpenAI.
        words = value.startswith("sk-") and sum(char.isdigit() for char in value) < 3
        return not words and entropy(value) >= 3.0 and not _LONG_PLACEHOLDER.search(value)
    if _PLACEHOLDER.search(value) or _UUID.fullmatch(value) or _NO_VALUE.search(value):
        return False
    if _HEX.fullmatch(value):
        return len(value) >= 24 and entropy(value) >= 2.8 and _mixed(value)
    digits = sum(char.isdigit() for char in value)
    if digits < 2 or (bare and not (re.search("[a-z]", value) and re.search("[A-Z]", value))):
        return False
    # Words change between letters, cases and digits seldom, random characters all the time.
    return entropy(value) >= 3.2 and _changes(value) >= 0.3 * (len(value) - 1)


def _mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _changes(value: str) -> int:
    """How often neighbours are of different kinds: lower case, upper case, digit, other."""
    kinds = ["d" if c.isdigit() else "l" if c.islower() else "u" if c.isupper() else "o" for c in value]
    return sum(left != right for left, right in pairwise(kinds))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
