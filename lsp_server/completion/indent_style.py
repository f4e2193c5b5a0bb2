"""How a piece of text indents its blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

# The head of a block, behind which the next line is one level deeper. Brackets of a list or call say
# nothing: what follows them may be indented by two levels, or aligned. Nor does prose that ends in a colon.
_HEAD = re.compile(
    r"\s*(?:async\s+)?(?:if|elif|else|for|while|try|except|finally|with|def|class|match|case)\b.*:\s*\Z"
    r"|(?:.*[^\s=(,\[])?\s*\{\s*\Z|.*\s(?:do|then)\s*\Z"
)
# Fewer than this is a coincidence.
_MIN_EVIDENCE = 2
# Exceptions a text may have (continuation lines, pasted pieces) and still count as uniform.
_SHARE = 0.8
_WIDTHS = frozenset({2, 3, 4, 8})


def indent_unit(lines: Sequence[str]) -> str:
    """One level of indentation: a tab, 2, 3, 4 or 8 spaces, or empty where the lines do not say.

    Spaces are judged by the lines behind the head of a block alone: others may be aligned to anything.
    """
    texts = [line for line in lines if line.strip() and not line.lstrip().startswith("*")]
    tabs = sum(line.startswith("\t") for line in texts)
    spaces = sum(line.startswith("  ") for line in texts)
    if tabs >= _MIN_EVIDENCE and tabs >= _SHARE * (tabs + spaces):
        return "\t"
    if tabs > (1 - _SHARE) * (tabs + spaces):
        return ""
    steps: Counter[int] = Counter()
    for line, following in pairwise(texts):
        step = leading_blanks(following) - leading_blanks(line)
        if step > 0 and heads_block(line):
            steps[step] += 1
    if not steps:
        return ""
    width, count = steps.most_common(1)[0]
    certain = count >= _MIN_EVIDENCE and count >= _SHARE * steps.total() and width in _WIDTHS
    return " " * width if certain else ""


def leading_blanks(line: str) -> int:
    """Number of blanks and tabs a line begins with."""
    return len(line) - len(line.lstrip(" \t"))


def heads_block(line: str) -> bool:
    """Whether the next line is one level deeper."""
    return _HEAD.match(line) is not None
