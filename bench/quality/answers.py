"""Asking several systems for the same tasks, and judging what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from bench.peers.base import PAUSE_S
from bench.quality.datasets import EditTask, InfillTask
from bench.quality.judge import Judgement, judge
from bench.records import Answer

Task = TypeVar("Task", bound="InfillTask | EditTask")


class Infilled(NamedTuple):
    """A peer's text for a gap: as it would be inserted, the milliseconds it took, its tokens if known."""

    text: str
    ms: float
    tokens: int | None


class Infiller(Protocol):
    """A system that fills gaps. A variant is a way to trim what it says, by its name in tables."""

    @property
    def name(self) -> str: ...

    @property
    def variants(self) -> tuple[str, ...]: ...

    def start(self) -> None:
        """Start and load.

        Raises:
            PeerFailed
        """

    def describe(self) -> dict[str, Any]:
        """Version, build flags, model file and settings; JSON values. ``numerics`` goes to the answers."""

    def infill(self, prefix: str, suffix: str, variant: str) -> Infilled:
        """The text for the place between ``prefix`` and ``suffix``, from nothing cached of this document.

        Raises:
            PeerFailed: it does not answer.
        """

    def stop(self) -> None:
        """End all processes that this started. Idempotent."""


@dataclass(frozen=True)
class Given:
    """What a system answered, as it would be inserted; ``finish_reason`` in its own words.

    ``forwards``, ``decode_ms``, ``first_hunk_ms`` and ``shown_behind`` are told for edits, see
    ``bench.records.Answer``.
    """

    text: str
    ms: float
    tokens: int | None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    forwards: int | None = None
    decode_ms: float | None = None
    first_hunk_ms: float | None = None
    shown_behind: int | None = None


@dataclass(frozen=True)
class Candidate(Generic[Task]):
    """One system in one variant; ``answer`` asks it."""

    system: str
    numerics: str
    variant: str
    answer: Callable[[Task], Given]


def infill_candidates(peer: Infiller) -> list[Candidate[InfillTask]]:
    """A started peer in all its variants."""
    numerics = str(peer.describe().get("numerics", ""))

    def in_variant(variant: str) -> Candidate[InfillTask]:
        def answer(task: InfillTask) -> Given:
            return Given(*peer.infill(task.prompt, task.suffix, variant))

        return Candidate(peer.name, numerics, variant, answer)

    return [in_variant(variant) for variant in peer.variants]


def by_turns(
    set_name: str,
    tasks: Sequence[Task],
    candidates: Sequence[Candidate[Task]],
    *,
    tests: bool,
    seconds: float | None = None,
    pause_s: float = PAUSE_S,
) -> Iterator[Answer]:
    """Every task to every candidate, each answer judged at once.

    All candidates answer a task before the next one comes, so what else the machine does hits them alike and
    a stopped run compares them on the same tasks. The first one changes from task to task. Tests run one at
    a time and never beside a system that answers. Between two systems there is a pause, until the threads of
    the first have gone to sleep.

    Args:
        seconds: no task but the first is begun later than this.

    Raises:
        PeerFailed: a system does not answer.
    """
    began = time.monotonic()
    before = candidates[0].system if candidates else ""
    for number, task in enumerate(tasks):
        if number and seconds is not None and time.monotonic() - began > seconds:
            return
        first = number % len(candidates)
        judged: dict[str, Judgement] = {}  # many candidates give the same answer
        for candidate in (*candidates[first:], *candidates[:first]):
            if candidate.system != before:
                time.sleep(pause_s)
                before = candidate.system
            given = candidate.answer(task)
            if given.text not in judged:
                judged[given.text] = judge(task, given.text, tests=tests)
            yield _answer(set_name, task, candidate, given, judged[given.text])


def _answer(
    set_name: str, task: Task, candidate: Candidate[Task], given: Given, judgement: Judgement
) -> Answer:
    return Answer(
        system=candidate.system,
        set=set_name,
        item=task.id,
        variant=candidate.variant,
        numerics=candidate.numerics,
        text=given.text,
        exact=judgement.exact,
        similarity=judgement.similarity,
        passed=judgement.passed,
        failure=judgement.failure,
        valid=judgement.valid,
        tokens=given.tokens,
        ms=given.ms,
        finish_reason=given.finish_reason,
        first_line=judgement.first_line,
        prompt_tokens=given.prompt_tokens,
        forwards=given.forwards,
        decode_ms=given.decode_ms,
        first_hunk_ms=given.first_hunk_ms,
        shown_behind=given.shown_behind,
    )
