"""The keys of a typist who writes a removed piece again, with slips, corrections, detours and pauses."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TypeAlias

from bench.records import Action
from bench.replay.detours import plan_line_above, plan_look
from bench.replay.indentation import indentation_after, indentation_unit, leading_blanks
from bench.replay.items import ReplayItem
from bench.replay.pace import Pause, pause_ms, typing_pause_ms

Place: TypeAlias = tuple[int, int]  # line and column from 0, in characters

SLIP_RATE = 0.02  # of the letters
MAX_UNNOTICED = 2  # further keys before a slip is noticed

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {row[i]: row[max(i - 1, 0) : i] + row[i + 1 : i + 2] for row in _ROWS for i in range(len(row))}


@dataclass(frozen=True)
class Stroke:
    """One thing the typist does. All places are right for the document as it is at that moment.

    Attributes:
        action: "type" (a character, or a step of indentation), "newline" (with the indentation that the
            editor adds), "typo" (a wrong letter), "backspace", "move", "edit-above".
        pause_ms: between the stroke before (or the acceptance of a suggestion) and this one.
        start, end, text: the text from ``start`` to ``end`` is replaced by ``text``; nothing changes if
            both places are equal and ``text`` is "".
        cursor: where the cursor stands afterwards; after "edit-above" it is back in the gap.
        ask: an editor would ask for a suggestion now; not when the added line was taken out at the end.
    """

    action: Action
    pause_ms: float
    start: Place
    end: Place
    text: str
    cursor: Place
    ask: bool = True


def apply(document: str, stroke: Stroke) -> str:
    """The document after a stroke."""
    start, end = _offset(document, stroke.start), _offset(document, stroke.end)
    return document[:start] + stroke.text + document[end:]


class TypistScript:
    """Gives one stroke after the other until the removed piece stands in the document again.

    The user may take suggestions in between: ``took`` says so, and typing goes on behind them. What the
    typist does depends only on the seed, the item and how much of the piece stands there, never on what was
    taken before. So two systems meet the same slips, detours and pauses wherever their users type.
    A shallow copy goes its own way, e.g. to look at the stroke to come.
    """

    def __init__(self, item: ReplayItem, seed: int) -> None:
        self._item = item
        self._seed = seed
        self._unit = indentation_unit(item.before + item.after)
        self._position = 0  # characters of the piece that stand in the document
        self._wrong = ""  # what stands behind them and must go
        self._unnoticed = 0  # keys still typed before the slip in _wrong is seen
        self._seen = True  # the typist knows of _wrong
        self._corrected = -1  # position of the slip corrected last
        self._look = plan_look(item, self._random("look"))
        self._looking = False
        self._line_above = plan_line_above(item, self._random("line above"))
        self._line_is_there = False

    @property
    def remaining(self) -> str:
        """What is still missing of the removed piece."""
        return self._item.removed[self._position :]

    @property
    def takeable(self) -> bool:
        """Whether a suggestion that begins ``remaining`` may be taken now.

        The cursor is in the gap then, and nothing wrong stands before it.
        """
        return not self._looking and not self._wrong and bool(self.remaining)

    @property
    def document(self) -> str:
        """The text after all strokes given and suggestions taken so far."""
        return self._before() + self._item.removed[: self._position] + self._wrong + self._item.after

    def took(self, text: str) -> None:
        """The user took a suggestion: ``text`` stands at the cursor now.

        Raises:
            ValueError: nothing is ``takeable``, or ``text`` is no beginning of ``remaining``.
        """
        if not self.takeable or not text or not self.remaining.startswith(text):
            raise ValueError(f"{text!r} cannot be taken here: {self.remaining!r} is missing")
        self._position += len(text)

    def next_stroke(self) -> Stroke | None:
        """The next stroke, None if the document is the original again."""
        if self._looking:
            return self._look_back()
        if self._unnoticed:
            return self._type_on_behind_slip()
        if self._wrong:
            return self._correct()
        if not self.remaining:
            return self._take_line_out() if self._line_is_there else None
        if self._line_above is not None and not self._line_is_there and self._position >= self._line_above.at:
            return self._add_line()
        if self._look is not None and self._position >= self._look.at:
            return self._look_away()
        if self.remaining[0] == "\n":
            return self._newline()
        if self.remaining[0] in " \t" and not self._line().strip():
            return self._indent()
        return self._slip() or self._type(self.remaining[0], self._typing_pause())

    # Strokes. Each is made from the document as it is, and then the state moves on.

    def _type(self, text: str, pause: float) -> Stroke:
        stroke = self._at_cursor("type", pause, 0, text)
        self._position += len(text)
        return stroke

    def _indent(self) -> Stroke:
        step = self._unit if self.remaining.startswith(self._unit) else self.remaining[0]
        return self._type(step, self._pause("indentation"))

    def _newline(self) -> Stroke:
        indentation = indentation_after(self._line(), self._item.language, self._unit)
        # Blanks on an otherwise empty line go when the line is left.
        stroke = self._at_cursor("newline", self._pause("newline"), len(self._wrong), "\n" + indentation)
        self._position += 1
        shared = _shared(indentation, leading_blanks(self.remaining))
        self._position += shared
        self._wrong = indentation[shared:]
        return stroke

    def _slip(self) -> Stroke | None:
        letter = self.remaining[0]
        near = _NEIGHBOURS.get(letter.lower())
        chance = self._random("slip")
        if near is None or self._position == self._corrected or chance.random() >= SLIP_RATE:
            return None
        wrong = chance.choice(near)
        wrong = wrong.upper() if letter.isupper() else wrong
        stroke = self._at_cursor("typo", self._typing_pause(), 0, wrong)
        rest = self.remaining.partition("\n")[0]
        self._unnoticed = min(chance.randint(0, MAX_UNNOTICED), len(rest) - 1)
        self._corrected = self._position
        self._seen = False
        self._wrong = wrong
        return stroke

    def _type_on_behind_slip(self) -> Stroke:
        letter = self.remaining[len(self._wrong)]
        stroke = self._at_cursor("type", self._pause("letter"), 0, letter)
        self._wrong += letter
        self._unnoticed -= 1
        return stroke

    def _correct(self) -> Stroke:
        blank = not self._wrong.strip()
        if blank and self.remaining[0] == "\n":
            return self._newline()
        # In an indentation the key goes back one level.
        count = len(self._unit) if blank and self._wrong.endswith(self._unit) else 1
        stroke = self._at_cursor("backspace", self._pause("backspace" if self._seen else "notice"), count, "")
        self._seen = True
        self._wrong = self._wrong[:-count]
        return stroke

    def _look_away(self) -> Stroke:
        assert self._look is not None
        gap = self._cursor()
        place = self._look.offset
        if self._look.behind:
            place += gap
        elif self._line_is_there and self._line_above is not None and place >= self._line_above.offset:
            place += len(self._line_above.text)
        self._looking = True
        return self._stroke("move", self._pause("move"), gap, gap, "", place)

    def _look_back(self) -> Stroke:
        self._look, self._looking = None, False
        gap = self._cursor()
        return self._stroke("move", self._pause("move back"), gap, gap, "", gap)

    def _add_line(self) -> Stroke:
        assert self._line_above is not None
        place, text = self._line_above.offset, self._line_above.text
        pause = self._pause("edit above")
        stroke = self._stroke("edit-above", pause, place, place, text, self._cursor() + len(text))
        self._line_is_there = True
        return stroke

    def _take_line_out(self) -> Stroke:
        assert self._line_above is not None
        place, length = self._line_above.offset, len(self._line_above.text)
        pause = self._pause("edit above")
        cursor = self._cursor() - length
        stroke = self._stroke("edit-above", pause, place, place + length, "", cursor, ask=False)
        self._line_above, self._line_is_there = None, False
        return stroke

    def _at_cursor(self, action: Action, pause: float, delete: int, text: str) -> Stroke:
        """``delete`` characters before the cursor are replaced."""
        end = self._cursor()
        return self._stroke(action, pause, end - delete, end, text, end - delete + len(text))

    def _stroke(
        self, action: Action, pause: float, start: int, end: int, text: str, cursor: int, ask: bool = True
    ) -> Stroke:
        """From offsets; ``cursor`` is one in the changed document."""
        document = self.document
        changed = document[:start] + text + document[end:]
        return Stroke(
            action, pause, _place(document, start), _place(document, end), text, _place(changed, cursor), ask
        )

    # The document.

    def _before(self) -> str:
        before = self._item.before
        if self._line_above is None or not self._line_is_there:
            return before
        return before[: self._line_above.offset] + self._line_above.text + before[self._line_above.offset :]

    def _cursor(self) -> int:
        return len(self._before()) + self._position + len(self._wrong)

    def _line(self) -> str:
        """The cursor's line up to the cursor."""
        typed = self._item.before + self._item.removed[: self._position] + self._wrong
        return typed.rpartition("\n")[2]

    # Chance.

    def _random(self, purpose: str) -> random.Random:
        return random.Random(f"{self._seed} {self._item.index} {self._position} {len(self._wrong)} {purpose}")

    def _pause(self, before: Pause) -> float:
        return pause_ms(before, self._random(f"pause {before}"))

    def _typing_pause(self) -> float:
        return typing_pause_ms(self._line(), self.remaining[0], self._random("pause"))


def _shared(one: str, other: str) -> int:
    """Characters that both begin with."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _place(document: str, offset: int) -> Place:
    return document.count("\n", 0, offset), offset - (document.rfind("\n", 0, offset) + 1)


def _offset(document: str, place: Place) -> int:
    start = 0
    for _ in range(place[0]):
        start = document.index("\n", start) + 1
    return start + place[1]
