"""The planner asks a draft model only where that pays, with made-up costs."""

from __future__ import annotations

import random

import pytest

from inference.drafting.base import Proposal
from inference.drafting.confidence import Calibration
from inference.drafting.model_worth import MOST_SAVED, SHARE, START, Ask, Costs, ModelWorth
from inference.drafting.planner import Planner
from inference.drafting.tree import EMPTY, Tree

THIRD = Costs(0.35, 0.03)


def _ask(other: float = 1.0, backlog: int = 0, left: int = 100, answers: int = 1) -> Ask:
    return Ask(other, backlog, left, answers)


class _World:
    """A draft model whose tokens are right with some chance, and which knows nothing of which."""

    def __init__(self, chance: float, costs: Costs, seed: int = 1) -> None:
        self.worth = ModelWorth()
        self.worth.begin(costs.draft)
        self._chance, self._costs = chance, costs
        self._random = random.Random(seed)
        self.tokens, self.time, self.drafts = 0, 0.0, 0

    def decode(self, tokens: int, other: float = 1.0) -> None:
        worth, costs, end = self.worth, self._costs, self.tokens + tokens
        while self.tokens < end:
            drafted = accepted = forwards = 0
            if worth.pays(_ask(other, left=end - self.tokens), costs):
                self.drafts += 1
                chance = 1.0
                while True:
                    forwards += 1
                    drafted += 1
                    chance *= worth.chance(0.85)
                    if not worth.goes_on(chance, drafted, forwards, costs):
                        break
                while accepted < drafted and self._random.random() < self._chance:
                    accepted += 1
                worth.learn(drafted, accepted, forwards, other, costs)
                for place in range(min(accepted + 1, drafted)):
                    worth.calibration.learn(0.85, place < accepted)
            worth.stepped(1 + accepted, other)
            self.tokens += 1 + accepted
            self.time += 1 + drafted * costs.row + forwards * costs.draft

    @property
    def gain(self) -> float:
        return self.tokens / self.time


def test_a_good_draft_model_is_used() -> None:
    world = _World(0.8, THIRD)
    world.decode(2000)
    assert world.gain > 1.25
    better = _World(0.95, Costs(0.1, 0.03))
    better.decode(2000)
    assert better.gain > 2.5


@pytest.mark.parametrize("chance", [0.0, 0.2, 0.35])
@pytest.mark.parametrize("costs", [THIRD, Costs(0.8, 0.03), Costs(0.35, 0.4)])
@pytest.mark.parametrize("seed", range(5))
def test_a_bad_one_costs_next_to_nothing(chance: float, costs: Costs, seed: int) -> None:
    world = _World(chance, costs, seed)
    world.decode(64)
    # Even the first answer loses no more than this.
    assert world.time <= world.tokens + START + 64 * SHARE + 1e-6
    world.decode(2000)
    assert world.gain > 0.98


def test_where_nothing_can_pay_nothing_is_tried() -> None:
    world = _World(1.0, Costs(10.0, 0.03))
    world.decode(3000)
    assert world.drafts == 0


def test_a_draft_model_that_got_better_is_found_again() -> None:
    world = _World(0.0, THIRD)
    world.decode(1000)
    tried = world.drafts
    assert 1 < tried < 1000 * SHARE / THIRD.token + 10
    world._chance = 0.85
    world.decode(3000)
    assert world.drafts > tried + 300


def test_text_that_changes_its_kind() -> None:
    world = _World(0.9, THIRD)
    world.decode(500)
    assert world.worth.saved <= MOST_SAVED + THIRD.token
    time, tokens = world.time, world.tokens
    world._chance = 0.0
    world.decode(64)
    assert world.time - time <= world.tokens - tokens + MOST_SAVED + 64 * SHARE + 1e-6


def test_good_copies_come_first() -> None:
    world = _World(0.8, THIRD)
    world.decode(500)
    assert world.worth.pays(_ask(1.0), THIRD)
    assert not world.worth.pays(_ask(3.0), THIRD)
    before = world.drafts
    world.decode(500, other=3.0)
    assert world.drafts == before


def test_a_long_prompt_must_be_worth_reading() -> None:
    world = _World(0.8, THIRD)
    world.decode(1000)
    pays = world.worth.pays
    assert pays(_ask(backlog=20), THIRD)
    assert not pays(_ask(backlog=3000), THIRD)
    assert not pays(_ask(backlog=400, left=3), THIRD)
    assert not pays(_ask(backlog=1000), THIRD)
    assert pays(_ask(backlog=1000, answers=4), THIRD)
    assert not pays(_ask(left=0), THIRD)


def test_reading_that_was_not_earned_back_is_owed() -> None:
    world = _World(0.8, THIRD)
    world.decode(1000)
    worth = world.worth
    for _ in range(2):
        assert worth.pays(_ask(backlog=300), THIRD)
        worth.read(300, THIRD)
        before = worth.saved
        assert worth.pays(_ask(), THIRD)
        worth.begin(THIRD.draft)  # the answer ended at once
        assert worth.saved < before - 1
    assert not worth.pays(_ask(), THIRD), "nothing more is risked for a while"


def test_a_bad_estimate_is_saved_up_for() -> None:
    world = _World(0.0, THIRD)
    world.decode(500)
    worth = world.worth
    dear = _ask(backlog=1000)
    for _ in range(5000):
        if worth.pays(dear, THIRD):
            worth.read(1000, THIRD)
            break
        worth.stepped(1, 1.0)
    else:
        pytest.fail("never tried again")
    assert worth.saved < 2.0, "what was read is paid for"


def test_measured_costs() -> None:
    worth = ModelWorth()
    worth.begin(0.3)
    assert worth.costs(0.0, 0.03) == worth.costs(50.0, 0.03) == Costs(0.3, 0.03)
    for _ in range(60):
        worth.observe(1, 20.0)
        worth.observe(101, 20.0 + 100 * 0.5)
    assert worth.costs(50.0, 0.03).draft == pytest.approx(0.4)
    assert worth.rows(100) == pytest.approx(2.5, rel=0.05)
    worth.observe(1, 5000.0)  # one stall
    assert worth.costs(50.0, 0.03).draft < 0.6
    for _ in range(60):
        worth.observe(1, 500.0)
    assert worth.costs(50.0, 0.03).draft > 3
    for _ in range(2000):
        worth.silent(50.0)
    assert worth.costs(50.0, 0.03).draft == pytest.approx(0.3, abs=0.05), "an old measurement is not for ever"


def test_the_planner_knows_the_speed_of_trees() -> None:
    planner = Planner()
    assert planner.speed(EMPTY) == 1.0
    long, short = (Tree.of_chain(Proposal((1,) * size, 9, "suffix"), 0.9) for size in (4, 1))
    assert planner.speed(long) > planner.speed(short) > 1.5
    assert planner.speed(Tree.of_chain(Proposal((1,) * 20, 0, "pointer"), 0.0)) < 1.0


def test_calibration() -> None:
    calibration = Calibration()
    assert calibration.chance(0.0) < calibration.chance(0.55) < calibration.chance(1.0)
    assert calibration.chance(float("nan")) == calibration.chance(0.0)
    for i in range(400):
        calibration.learn(0.55, i % 5 != 0)
    assert 0.65 < calibration.chance(0.51) < 0.95
    assert calibration.chance(0.45) == pytest.approx(0.45)
