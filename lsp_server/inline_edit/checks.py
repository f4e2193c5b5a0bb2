"""What makes an edit doubtful. Such an edit is shown with its flags and not applied unasked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lsp_server.documents.text import Snapshot
from lsp_server.inline_edit.edited import Edited
from lsp_server.inline_edit.reasons import Flag

# An instruction with such a word asks for less code.
_ASKS_FOR_LESS = re.compile(
    r"\b(?:delet|remov|drop|strip|shorten|simplif|simpler|less|fewer|clean|replac|inline|extract|reduc|"
    r"merge|collaps|combin|one[- ]?lin|comprehension|refactor|rewrit|only|truncat|discard|get rid)\w*",
    re.IGNORECASE,
)
# Lines that go at most, as a share of the selection's, before an edit is doubtful.
_MOST = 0.6
_FEW_LINES = 4
_REPEATS = 4


def flags_of(
    edited: Edited,
    old: Sequence[str],
    new: Sequence[str],
    instruction: str,
    truncated: bool,
    beyond: bool = False,
    lacks_import: bool = False,
) -> list[Flag]:
    """The flags of an edit.

    Args:
        old: the selected lines.
        new: what they become.
        beyond: the answer writes what stands around the selection, see nesting.py and trim.py.
        lacks_import: it uses what it imports outside of the selection.
    """
    flags = []
    if truncated:
        flags.append(Flag.TRUNCATED)
    if deletes_most(old, new, instruction):
        flags.append(Flag.DELETES_MOST)
    if repeats(old, new):
        flags.append(Flag.REPEATS)
    if breaks_syntax(edited):
        flags.append(Flag.PARSE_ERROR)
    if beyond:
        flags.append(Flag.BEYOND)
    if lacks_import:
        flags.append(Flag.LACKS_IMPORT)
    return flags


def deletes_most(old: Sequence[str], new: Sequence[str], instruction: str) -> bool:
    """Whether most lines would be lost although nobody asked for less."""
    before = [line for line in old if line.strip()]
    after = [line for line in new if line.strip()]
    if not after:
        return bool(before) and not _ASKS_FOR_LESS.search(instruction)
    if len(before) < _FEW_LINES or _ASKS_FOR_LESS.search(instruction):
        return False
    return len(after) < (1 - _MOST) * len(before)


def repeats(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether a line, or a group of up to four, comes four times in a row and did not before."""
    return _loops(new) and not _loops(old)


def breaks_syntax(edited: Edited) -> bool:
    """Whether the document parsed and would not any more. False for languages without a grammar."""
    before = edited.before
    if before is None or before.has_error:
        return False
    return edited.after is not None and edited.after.has_error


def summary(old: Sequence[str], new: Sequence[str]) -> str:
    """In words: how many lines were added and removed."""
    before, after = Counter(old), Counter(new)
    added, removed = sum((after - before).values()), sum((before - after).values())
    return f"{_lines(added)} added, {_lines(removed)} removed"


def whole_text(snapshot: Snapshot, first: int, stop: int, lines: Sequence[str]) -> str:
    """The document with ``lines`` in place of lines ``first`` to ``stop``, ``\\n`` as line ends."""
    above, below = snapshot.lf(0, first), snapshot.lf(stop, len(snapshot.lines))
    middle = "".join(line + "\n" for line in lines)
    if stop == len(snapshot.lines):
        middle = middle.removesuffix("\n")
    return above + middle + below


def _loops(lines: Sequence[str]) -> bool:
    kept = [line for line in lines if line.strip()]
    for period in range(1, 5):
        run = 0
        for at in range(period, len(kept)):
            same = kept[at] == kept[at - period] and any(map(str.isalnum, kept[at]))
            run = run + 1 if same else 0
            if run >= (_REPEATS - 1) * period:
                return True
    return False


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"
