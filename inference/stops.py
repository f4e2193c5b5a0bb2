"""Where a generation ends: checked after every token, so that drafts cannot change it."""

from __future__ import annotations

from inference.api import FinishReason, StopRules
from inference.below import BelowChecker
from inference.lines import indent_columns, is_distinctive

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(OPENERS.values())
QUOTES = frozenset("\"'`")


class StopChecker:
    """Collects generated text and finds its end.

    Attributes:
        text: what was generated so far; cut to its final form once `push` returned a reason.
    """

    def __init__(self, rules: StopRules) -> None:
        self._rules = rules
        self.text = ""
        rest, _, below = rules.suffix.partition("\n")
        self._rest = rest.strip()
        lines = [line.rstrip() for line in below.split("\n")]
        self._lines = [line for line in lines if line][:2] if not self._rest else []
        # A rest that says something is not written again by chance; a short one is the brackets' matter.
        self._rest_stop = self._rest if is_distinctive(self._rest) else ""
        self._line_start = 0  # start of the line being written
        self._line_count = 0  # newlines so far
        self._match_at: int | None = None  # where the repeated suffix began, while not yet certain
        self._depth = 0
        self._quote = ""
        self._mark = rules.open_text  # of the string of several lines that is being written
        self._mark_from = 0  # where the next mark may begin
        self._min_indent = rules.min_indent
        self._finds_scope = rules.first_line_scope and rules.min_indent is None
        self._below = None if rules.below is None else BelowChecker(rules.below)

    def push(self, piece: str) -> FinishReason | None:
        """Append text; the reason if it ends here. Works character by character."""
        for character in piece:
            reason = self._push_character(character)
            if reason is not None:
                return reason
        return None

    def finish(self) -> None:
        """The generation ended for another reason; cut what repeats the suffix at its end."""
        if self._wrote_rest(""):
            self.text = self.text[: -len(self._rest_stop)]
        elif self._line_repeats():
            self._cut_before_line(self._line_start)
        elif self._match_at is not None:
            self._cut_before_line(self._match_at)
        else:
            self._line_shows_end()

    @property
    def settled(self) -> int:
        """Length of text that no later decision can take back."""
        end = len(self.text)
        for string, longest in (
            *((string, len(string) - 1) for string in self._rules.strings),
            # Whether a whole rest counts is known with the next character.
            (self._rest_stop, len(self._rest_stop)),
        ):
            for size in range(min(longest, len(self.text)), 0, -1):
                if string.startswith(self.text[-size:]):
                    end = min(end, len(self.text) - size)
                    break
        if self._lines:
            if self._match_at is not None:
                end = min(end, self._match_at)
            line = self.text[self._line_start :]
            if self._could_repeat(line) or not line.strip():
                end = min(end, self._line_start)
        if self._below is not None:
            end = min(end, self._below.settled(self._line_start))
        if self._lines or self._min_indent is not None or self._finds_scope or self._below is not None:
            # A cut takes the blanks and blank lines before it along.
            end = len(self.text[:end].rstrip())
        return end

    def _push_character(self, character: str) -> FinishReason | None:
        rules = self._rules
        if self._wrote_rest(character):
            self.text = self.text[: -len(self._rest_stop)]
            return FinishReason.SUFFIX
        if character == "\n":
            if rules.single_line or (rules.finish_line and not self._line_count and self.text.strip()):
                return FinishReason.LINES
            if self._line_is_certain_repeat():
                return FinishReason.SUFFIX
            if self._line_shows_end():
                return FinishReason.SUFFIX
            if rules.max_lines is not None and self._line_count + 1 >= rules.max_lines:
                self.finish()
                return FinishReason.LINES
        elif self._leaves_scope(character):
            self._cut_before_line(self._line_start)
            return FinishReason.SCOPE
        elif self._begins_body_below(character) or self._closes_outside(character):
            return FinishReason.SUFFIX
        self.text += character
        for string in rules.strings:
            if self.text.endswith(string):
                self.text = self.text[: -len(string)]
                return FinishReason.STOP_STRING
        if character == "\n":
            self._line_start = len(self.text)
            self._line_count += 1
            self._quote = ""
        return None

    # -- the scope, by indentation

    def _leaves_scope(self, character: str) -> bool:
        """The first character of a line that is indented less than the scope of the cursor."""
        if self._finds_scope and not character.isspace():
            self._min_indent = indent_columns(self.text[self._line_start :]) or None
            self._finds_scope = False
        limit = self._min_indent
        if (
            limit is None
            or self._mark
            or self._line_start == 0
            or character.isspace()
            or character in CLOSERS
        ):
            return False
        indent = self.text[self._line_start :]
        return not indent.strip() and indent_columns(indent) < limit

    # -- the suffix, line by line

    def _line_is_certain_repeat(self) -> bool:
        """The line just completed repeats the suffix beyond doubt; the text is then cut."""
        line = self.text[self._line_start :].rstrip()
        if self._match_at is not None:
            if not line:
                return False
            if len(self._lines) > 1 and line == self._lines[1]:
                self._cut_before_line(self._match_at)
                return True
            self._match_at = None
        if not self._line_repeats():
            return False
        if is_distinctive(line) or _only_closes(line) or len(self._lines) == 1:
            self._cut_before_line(self._line_start)
            return True
        self._match_at = self._line_start
        return False

    def _line_repeats(self) -> bool:
        line = self.text[self._line_start :].rstrip()
        if not self._lines:
            return False
        if self._line_start == 0:
            # It continues the cursor's line, so its indentation means nothing, and a short one
            # may be right there too.
            return line.strip() == self._lines[0].strip() and is_distinctive(line)
        if line != self._lines[0]:
            return False
        # Closing brackets repeat the suffix only if the generated text has no opener for them.
        return self._depth < 0 if _only_closes(line) else True

    def _could_repeat(self, line: str) -> bool:
        if self._line_start == 0:
            return self._lines[0].lstrip().startswith(line.strip())
        return self._lines[0].startswith(line.rstrip())

    def _cut_before_line(self, start: int) -> None:
        self.text = self.text[:start].rstrip()

    # -- the rest of the cursor's line

    def _wrote_rest(self, following: str) -> bool:
        """The text ends with the rest of the cursor's line, not within a longer word; ``following`` comes
        next, empty at the end."""
        rest = self._rest_stop
        if not rest or self._line_count or not self.text.endswith(rest):
            return False
        before = self.text[: -len(rest)][-1:]
        return not (_is_word(before) and _is_word(rest[0])) and not (
            _is_word(rest[-1]) and _is_word(following)
        )

    # -- what the lines below tell

    def _begins_body_below(self, character: str) -> bool:
        """The first character of a line, at which it turns out that the text has ended; it is then cut."""
        if self._below is None or character.isspace() or self.text[self._line_start :].strip():
            return False
        return self._cut_at(self._below.line_begins(self.text, self._line_start, character, self._depth))

    def _line_shows_end(self) -> bool:
        """The line just completed shows that the text has ended; it is then cut."""
        if self._below is None:
            return False
        return self._cut_at(self._below.line_ends(self.text, self._line_start))

    def _cut_at(self, end: int | None) -> bool:
        if end is None:
            return False
        self.text = self.text[:end].rstrip()
        return True

    # -- brackets against the rest of the cursor's line

    def _closes_outside(self, character: str) -> bool:
        """A bracket the generated text never opened, and that already stands after the cursor."""
        if self._in_long_string(character):
            return False
        if self._quote:
            if character == self._quote and not self.text.endswith("\\"):
                self._quote = ""
            return False
        if character in QUOTES:
            self._quote = character
        elif character in OPENERS:
            self._depth += 1
        elif character in CLOSERS:
            if self._depth <= 0 and self._rest.startswith(character):
                return True
            self._depth -= 1
        return False

    def _in_long_string(self, character: str) -> bool:
        """Whether ``character`` stands in a string of several lines, or is the last of its mark."""
        marks = (self._mark,) if self._mark else self._rules.text_marks
        for mark in marks:
            if character != mark[-1] or (self._quote and not self._mark):
                continue
            start = len(self.text) + 1 - len(mark)
            written = start >= self._mark_from and self.text.endswith(mark[:-1])
            if written and self.text[:start][-1:] != "\\":
                self._mark = "" if self._mark else mark
                self._mark_from = len(self.text) + 1
                return True
        return bool(self._mark)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _only_closes(line: str) -> bool:
    """A line of nothing but closing brackets and separators."""
    return all(c in CLOSERS or c in ";, " for c in line.strip())
