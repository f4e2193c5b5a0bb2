"""All comparisons of a run together: what was seen, and whether it proves something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.exactness.variants import Level
from bench.records import Checked, CheckedWay, Restarted

# In the order in which they are shown.
FACTORS = ("drafter", "draft limit", "cache", "prefill chunk", "threads", "temperature", "prompt")


@dataclass
class Tally:
    """Answers at one level of one factor."""

    answers: int = 0
    identical: int = 0
    drafted: int = 0
    accepted: int = 0
    cached: int = 0
    widest: int = 0

    @property
    def rejected(self) -> int:
        """Drafted tokens that were wrong."""
        return self.drafted - self.accepted

    def add(self, way: CheckedWay) -> None:
        """Count one answer."""
        self.answers += 1
        self.identical += way.same
        self.drafted += way.drafted
        self.accepted += way.accepted
        self.cached += way.cached_tokens > 0
        self.widest = max(self.widest, way.widest)


@dataclass(frozen=True)
class Verdict:
    """Attributes:
    levels: for each factor and level what was seen; "prompt" is the kind of the prompt.
    missing: "factor level" for what should have been seen and was not.
    restarts: answers compared after a change of kernels or threads, and how many were identical.
    """

    prompts: int
    total: Tally
    levels: Mapping[str, Mapping[Level, Tally]]
    missing: tuple[str, ...]
    promised: bool
    restarts: tuple[int, int] = field(default=(0, 0))

    @property
    def meaningful(self) -> bool:
        """Whether everything that might change an answer has happened."""
        total = self.total
        happened = min(total.answers, total.drafted, total.accepted, total.rejected, total.cached)
        return happened > 0 and not self.missing

    @property
    def identical(self) -> bool:
        """Nothing differed."""
        return self.total.identical == self.total.answers and self.restarts[0] == self.restarts[1]

    @property
    def passed(self) -> bool:
        """Nothing differed; or bits are not promised here, and then any share is only a report."""
        return self.meaningful and (self.identical or not self.promised)


def tallies(checked: Iterable[Checked]) -> dict[str, dict[Level, Tally]]:
    """What was seen, by factor and level."""
    found: dict[str, dict[Level, Tally]] = {factor: {} for factor in FACTORS}
    for record in checked:
        for way in record.answers():
            for factor, level in _levels_of(record, way):
                found[factor].setdefault(level, Tally()).add(way)
    return found


def total(checked: Iterable[Checked]) -> Tally:
    """All answers together."""
    tally = Tally()
    for record in checked:
        for way in record.answers():
            tally.add(way)
    return tally


def verdict(
    checked: Sequence[Checked],
    wanted: Mapping[str, Sequence[Level]],
    promised: bool,
    restarted: Sequence[Restarted] = (),
) -> Verdict:
    """Of a run; ``wanted`` are the levels that it should have seen."""
    levels = tallies(checked)
    missing = [
        f"{factor} {level}" for factor, of in wanted.items() for level in of if level not in levels[factor]
    ]
    return Verdict(
        prompts=len(checked),
        total=total(checked),
        levels=levels,
        missing=tuple(missing),
        promised=promised,
        restarts=(
            sum(record.answers for record in restarted),
            sum(record.identical for record in restarted),
        ),
    )


def _levels_of(record: Checked, way: CheckedWay) -> Iterable[tuple[str, Level]]:
    yield "drafter", way.draft
    if way.draft != "none":
        yield "draft limit", way.limit
    yield "cache", way.cache
    yield "prefill chunk", way.chunk
    if way.threads is not None:
        yield "threads", way.threads
    yield "temperature", record.temperature
    yield "prompt", record.set
