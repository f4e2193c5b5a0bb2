"""Takes out of an answer what stands around the selection already.

Small models that are asked about the body of a function often write the imports, the class and the whole
function. In place of the body that would be a definition within itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inference.lines import line_columns
from inference.stops import CLOSERS
from lsp_server.inline_edit.around import (
    Around,
    Head,
    is_import,
    opens_imports,
    says_about,
    side,
    words,
    wordy,
)
from lsp_server.inline_edit.selection import Selection

_ASKS_FOR_IMPORTS = re.compile(r"\b(?:import\w*|include|require)\b", re.IGNORECASE)
_ASKS_TO_NEST = re.compile(
    r"\b(?:wrap|nest|surround|enclos|embed|around|inside|within|into|block)\w*", re.IGNORECASE
)
# Words of imports that name nothing.
_NO_NAMES = frozenset({"import", "from", "as", "use", "using", "include", "require", "static", "type"})


@dataclass(frozen=True)
class _Held:
    """A line at the answer's begin of which it is not known yet whether it repeats something.

    Attributes:
        imports: it imports something.
        known: which the file has already.
    """

    line: str
    imports: bool = False
    known: bool = False


class Trimmer:
    """Passes on the lines of an answer but for those that stand around the selection.

    A line is passed on as soon as it is certain that it stays: nothing that was passed on is taken back.

    Attributes:
        empty: nothing was passed on so far.
        beyond: the answer has more to say about what stands around the selection than can be taken out.
    """

    def __init__(self, selection: Selection, instruction: str) -> None:
        self._selection = selection
        self._instruction = instruction
        self._asks_for_imports = _ASKS_FOR_IMPORTS.search(instruction) is not None
        self.beyond = False
        self.empty = True
        self._left_out: list[str] = []  # imports that the file lacks, and that cannot stand in a block
        self._around: Around | None = None
        self._tail: _Tail | None = None
        self._held: list[_Held] = []
        self._listed: int | None = None  # first held line of a list of imports that goes on
        self._last: int | None = None  # line of the document that the answer has repeated last
        self._head: tuple[Head, int] | None = None  # the last one repeated, and its columns in the answer
        self._inner: frozenset[str] = frozenset()  # heads that stand between that one and the selection

    def push(self, line: str) -> list[str]:
        """One more line of the answer; those that are certain to stay."""
        if self._around is None:
            self._around = Around(self._selection, nests=_ASKS_TO_NEST.search(self._instruction) is not None)
        out = self._begin(self._around, line) if self._tail is None else self._go_on(self._tail, line)
        self.empty = self.empty and not out
        return out

    def finish(self) -> list[str]:
        """The answer has ended; what was held back and stays."""
        if self._tail is not None:
            out = self._tail.finish()
        elif self._head is not None or self._around is None:
            out = []
        else:
            out = self._unknown() or [held.line for held in self._held]
        self._held = []
        self.empty = self.empty and not out
        return out

    def lacks_import(self, old: Sequence[str], new: Sequence[str]) -> bool:
        """Whether the new lines use an import that was taken out although the file lacks it."""
        used = set().union(*map(words, new)) - set().union(*map(words, old))
        return any(
            line.lstrip().startswith("#") or (words(line) - _NO_NAMES) & used for line in self._left_out
        )

    def _begin(self, around: Around, line: str) -> list[str]:
        text = line.strip()
        if not text:
            self._held.append(_Held(line))
            return []
        if self._listed is not None:
            # The prompt shows no more than the first line of a list, and so may the answer.
            if around.find(text, None) is not None or is_import(line):
                self._end_list(self._listed)
            else:
                self._held.append(_Held(line, True, text[0] in CLOSERS or around.has_import(line)))
                if text[0] in CLOSERS:
                    self._end_list(self._listed)
                return []
        found = around.find(text, self._last)
        if found is not None:
            self._repeated(around, line, found)
            return []
        if self._head is None and is_import(line) and text not in around.own:
            self._held.append(_Held(line, True, around.has_import(line)))
            if opens_imports(line):
                self._listed = len(self._held) - 1
            return []
        if says_about(line) and text not in around.own:
            self._held.append(_Held(line))
            return []
        return self._decide(around, line)

    def _end_list(self, first: int) -> None:
        """A list is known as a whole or not at all."""
        lines = self._held[first:]
        known = all(held.known or not held.line.strip() for held in lines)
        self._held[first:] = [_Held(held.line, True, known) for held in lines]
        self._listed = None

    def _repeated(self, around: Around, line: str, found: int) -> None:
        head = around.head_at(found)
        if head is not None:
            self._head = head, line_columns(line)
            self._inner = frozenset(h.text for h in around.heads if h.number > found and h.sure) - around.own
        self._last = found
        # What says something about the line that is repeated; a new decorator would be one of its own.
        self.beyond = self.beyond or any(
            held.line.strip().startswith("@") and not around.has(held.line.strip()) for held in self._held
        )
        self._held = [held for held in self._held if held.imports]

    def _decide(self, around: Around, line: str) -> list[str]:
        """The first line that is no repetition."""
        self._tail = _Tail(around, line, self._head)
        if self._head is None:
            out = self._unknown()
        else:
            innermost = around.heads[-1].number
            # In the middle of a definition that stands beside the selection's own.
            beside = self._last is not None and self._head[0].number < self._last < innermost
            self.beyond = self.beyond or beside
            out = self._imports(around, line)
            out += _without_leading_blanks([held.line for held in self._held if not held.imports])
        self._held = []
        return out + self._go_on(self._tail, line)

    def _unknown(self) -> list[str]:
        """What was held of an answer that repeats imports at most."""
        if self._asks_for_imports:
            return [held.line for held in self._held]
        lines = [held.line for held in self._held if not held.known]
        return lines if len(lines) == len(self._held) else _without_leading_blanks(lines)

    def _imports(self, around: Around, line: str) -> list[str]:
        """The new imports in front of a repeated head: at the begin of the body, if they may stand there."""
        new = [
            held.line
            for held in self._held
            if held.imports and held.line.strip() and not (held.known and not self._named(held.line))
        ]
        indent = line[: len(line) - len(line.lstrip())]
        kept = []
        for each in new:
            if around.takes_import(each):
                kept.append(indent + each)
            elif not around.has_import(each) and not each.startswith("package"):
                self._left_out.append(each)
        return kept

    def _named(self, line: str) -> bool:
        """Whether the instruction asks for this import."""
        return self._asks_for_imports and bool((words(line) - _NO_NAMES) & words(self._instruction))

    def _go_on(self, tail: _Tail, line: str) -> list[str]:
        self.beyond = self.beyond or line.strip() in self._inner
        out = tail.push(line)
        self.beyond = self.beyond or tail.beyond
        return out


class _Tail:
    """Follows an answer behind its begin, and holds back what may be the text below the selection."""

    def __init__(self, around: Around, first: str, head: tuple[Head, int] | None) -> None:
        """``first``: the first line that stays; ``head``: the last that was taken out, with its columns."""
        self._around = around
        self._below = around.below
        self._sure = head is not None
        self.beyond = False
        # Lines that are indented no further than this stand outside of what holds the selection.
        self._limit = -1
        self._first = columns = line_columns(first)
        if head is None:
            self._limit = columns - 1 if around.flush else -1
        elif columns > head[1] and around.fewest > head[0].columns:
            self._limit = head[1]
        self._held: list[str] = []
        self._at = 0  # lines below that are held
        self._wordy = 0  # of them
        self._outside = False
        self._off = False

    def push(self, line: str) -> list[str]:
        if self._off:
            return [line]
        text = line.strip()
        if not text:
            self._held.append(line)
            return []
        outside = line_columns(line) <= self._limit
        if self._outside or outside:
            return self._push_outside(line, text, outside)
        if self._at and not self._follows(line, text):
            return [*self._release(), *self.push(line)]
        if not self._follows(line, text) or not (self._at or wordy(text)):
            return [*self._release(), line]
        self._hold(line)
        return []

    def _push_outside(self, line: str, text: str, outside: bool) -> list[str]:
        place = next((at for at in range(self._at, len(self._below)) if self._below[at][0] == text), None)
        closes = text[0] in CLOSERS and not wordy(text)
        if place is not None and (self._sure or place == self._at):
            self._at = place
            self._hold(line)
        elif self._sure and closes and outside:
            self._held.append(line)
        else:
            self._off = True
            self.beyond = self._sure and text not in self._around.own
            return [*self._release(), line]
        self._outside = True
        return []

    def finish(self) -> list[str]:
        """What was held and stays, now that nothing follows."""
        repeats = self._outside or self._wordy >= (1 if self._sure else 2)
        return [] if repeats else self._release()

    def _follows(self, line: str, text: str) -> bool:
        # In a deeper block than below, the same words mean something else.
        here = text, side(line_columns(line), self._first)
        return self._below[self._at : self._at + 1] == [here] and text not in self._around.own

    def _hold(self, line: str) -> None:
        self._held.append(line)
        self._at += 1
        self._wordy += wordy(line)

    def _release(self) -> list[str]:
        held, self._held = self._held, []
        self._at = self._wordy = 0
        return held


def _without_leading_blanks(lines: list[str]) -> list[str]:
    while lines and not lines[0].strip():
        lines = lines[1:]
    return lines
