"""Whether a draft model pays: its forwards cost time before anything is known about the draft.

Everything is counted in plain forwards, the target's forward of one row: a draft forward costs some third of
one, an accepted token saves one.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.drafting.confidence import Calibration

# An average draft until there is experience: tokens accepted and drafted, draft forwards.
PRIOR = (0.9, 1.5, 1.5)
SMOOTHING = 0.07

# Forwards that may be lost: so many at first, then this share of all. A draft that may cost more than what is
# left is not made. So in the long run decoding takes at most 1 + SHARE times as long as without draft model.
START = 4.0
SHARE = 0.015
# What gains add. More would be lost at once where a text begins that the draft model knows nothing of.
MOST_SAVED = 8.0

# What is less likely, together with all before it, is not verified. A row costs 0.03 of a forward with VNNI,
# more elsewhere.
LEAST_CHANCE = 0.05
# Other proposals that promise less than this speed leave something to gain for the draft model.
PROMISING = 1.25
# Reading the text up to here must promise this many times its cost: an answer may end at any token.
MARGIN = 1.5
FIRST_UNCOVERED = 32.0  # tokens of an answer without a promising proposal, until answers were seen

SHORT = 32  # tokens to read that are part of a draft's cost; more are an outlay for the rest of the answer

FIRST_ROW = 0.04  # cost of one more row in a draft forward, as a share of one
WIDE = 16  # rows from which on a draft forward tells about that
NARROW = 2  # and those up to which it tells about the cost of drafting a token
STALL = 3.0  # times the mean; a longer forward tells about the machine, not about the model
RECOVERY = 0.005  # as `planner.RECOVERY`


@dataclass(frozen=True)
class Costs:
    """In plain forwards: of one draft forward, and of one more row in the target's forward."""

    draft: float
    row: float

    @property
    def token(self) -> float:
        """Of a drafted token."""
        return self.draft + self.row


@dataclass(frozen=True)
class Ask:
    """What is known when the draft model might be asked.

    Attributes:
        other: speed that the best other proposal promises, as a multiple of plain decoding's.
        backlog: tokens that the draft model has to read first.
        left: tokens that the answer may still have.
        answers: that the reading serves, as far as can be foreseen.
    """

    other: float
    backlog: int
    left: int
    answers: int


class ModelWorth:
    """Learns what drafts of a model bring and cost, and keeps an account of what they may lose.

    Attributes:
        calibration: of the draft model's probabilities.
        saved: forwards that may be lost now.
    """

    def __init__(self) -> None:
        self.calibration = Calibration()
        self.saved = START
        self._mean = PRIOR
        self._sure = 0.7  # mean chance of the draft model's next token
        self._draft_ms = 0.0
        self._row = FIRST_ROW
        self._guess = 1.0
        self._wanted = 0.0  # price of a backlog that was too dear for a trial, saved up for
        self._outlay = 0.0  # spent on reading and not earned back yet
        self._answers = 1  # that it was spent for
        self._trial = False  # the model was asked against experience
        self._uncovered, self._uncovered_now = FIRST_UNCOVERED, 0

    def begin(self, guess: float) -> None:
        """An answer begins. ``guess``: cost of a draft forward until some were measured."""
        self._guess = guess
        due = self._outlay / self._answers
        self._outlay -= due
        self.saved -= due
        if self._uncovered_now:
            self._uncovered += SMOOTHING * (self._uncovered_now - self._uncovered)
        self._uncovered_now = 0

    def costs(self, plain_ms: float, row: float) -> Costs:
        """Now; ``plain_ms`` is 0 if no forward of the target was measured yet."""
        known = plain_ms > 0 and self._draft_ms > 0
        return Costs(self._draft_ms / plain_ms if known else self._guess, row)

    def rows(self, count: int) -> float:
        """Cost of ``count`` more rows in a draft forward, in forwards of one row."""
        return count * self._row

    def speed(self, costs: Costs) -> float:
        """Tokens per time of an average draft, as a multiple of plain decoding's."""
        accepted, drafted, forwards = self._mean
        return (1 + accepted) / (1 + drafted * costs.row + forwards * costs.draft)

    def pays(self, ask: Ask, costs: Costs) -> bool:
        """Whether to draft now. Where experience speaks against it, once in a while all the same."""
        if self.saved < costs.token or ask.left < 1:
            return False
        speed, reading = self.speed(costs), self.rows(ask.backlog) * costs.draft
        if speed > max(ask.other, 1.0):
            # For the next tokens it pays. Does it for as many as there will be?
            tokens = ask.answers * min(ask.left, self._uncovered)
            self._trial, self._answers = False, ask.answers
            return MARGIN * reading < (1 - 1 / speed) * tokens
        if ask.other >= PROMISING:
            return False
        if self.saved < max(1.0, costs.token) + reading:
            self._wanted = reading
            return False
        self._trial, self._wanted = True, 0.0
        return True

    def read(self, backlog: int, costs: Costs) -> None:
        """So many tokens were read; up to `SHORT` of them count as forwards of the draft instead."""
        cost = self.rows(backlog) * costs.draft
        if self._trial:
            self.saved -= cost
        else:
            self._outlay += cost

    def goes_on(self, chance: float, drafted: int, forwards: float, costs: Costs) -> bool:
        """Whether to draft one more token.

        Args:
            chance: that all ``drafted`` tokens are right.
            forwards: draft forwards made for them.
        """
        spent = drafted * costs.row + forwards * costs.draft
        if spent + costs.token > self.saved:
            return False
        # A forward saved is worth the more the fewer are needed: time is worth what it yields elsewhere.
        return chance * self._sure > costs.token * max(self.speed(costs), 1.0)

    def stepped(self, tokens: int, other: float | None) -> None:
        """The target made a forward that yielded ``tokens``; ``other`` as in `Ask`, None if nothing was
        asked."""
        most = max(self.saved, MOST_SAVED + self._wanted)
        self.saved = min(self.saved + SHARE, most)
        if other is not None and other < PROMISING:
            self._uncovered_now += tokens

    def learn(self, drafted: int, accepted: int, forwards: float, other: float, costs: Costs) -> None:
        """From a verified draft."""
        a, d, f = self._mean
        self._mean = (
            a + SMOOTHING * (accepted - a),
            d + SMOOTHING * (drafted - d),
            f + SMOOTHING * (forwards - f),
        )
        gain = -forwards * costs.draft
        if drafted:
            # Against what the other proposal would have brought in its place.
            gain += (1 + accepted) / max(other, 1.0) - (1 + drafted * costs.row)
        earned = min(max(gain, 0.0), self._outlay)
        self._outlay -= earned
        self.saved = min(self.saved + gain - earned, max(self.saved, MOST_SAVED))

    def chance(self, probability: float) -> float:
        """How likely the draft model's next token is right, if it gives it this probability."""
        chance = self.calibration.chance(probability)
        self._sure += SMOOTHING * (chance - self._sure)
        return chance

    def silent(self, plain_ms: float) -> None:
        """The draft model was not asked: what is known of its cost gets old."""
        if self._draft_ms:
            self._draft_ms += RECOVERY * (self._guess * plain_ms - self._draft_ms)

    def observe(self, rows: int, ms: float) -> None:
        """Learn from the time of one draft forward."""
        if rows <= NARROW:
            before = self._draft_ms or ms
            self._draft_ms = before + SMOOTHING * (min(ms, STALL * before) - before)
        elif rows >= WIDE and self._draft_ms:
            cost = (ms - self._draft_ms) / (rows - 1) / self._draft_ms
            self._row += SMOOTHING * (min(max(cost, 0.0), 1.0) - self._row)
