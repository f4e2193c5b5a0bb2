"""Which of the right kernels is fastest here, in a bounded time and also on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from inference.model.linear.int8 import Int8Kernel
from inference.probe.candidates import FORWARDS, WIDTHS, Candidate, GetLibrary, Product
from inference.probe.values import FAILURES, fault

# For everything: values, packing, times. What is unknown by then stays unknown.
BUDGET_S = 0.3
ROUNDS = 5
# One layer of 2 MB stays in a core's own cache, where a real model's weights never are.
LAYERS, OUTPUTS, INPUTS = 6, 2048, 1024
# Slower than the best by this factor, also when tried again: no need to know by how much.
GIVE_UP = 4.0
_RETRIES = 3
_FULL = 16  # rows up to which all layers are run
# What a later entry of the list must gain to be preferred: less may be chance.
WORTHWHILE = 0.95
# The same against the compiled products: with them all layers run in one call, and the steps between the
# products in a fraction of the time.
ONE_CALL = 0.6


@dataclass(frozen=True)
class KernelReport:
    """One candidate of the probe.

    Attributes:
        problem: why it cannot be used, "" if its values are right.
        row_ms: rows -> milliseconds for LAYERS products of [rows, 1024] x [1024, 2048], the best of some;
            no entry where the time ran out.
        widths: the rows it is meant for.
        gave_up: it was so slow that the rest was not measured.
    """

    name: str
    problem: str
    row_ms: dict[int, float] = field(default_factory=dict)
    widths: tuple[int, ...] = WIDTHS
    gave_up: bool = False

    @property
    def exact(self) -> bool:
        """Its values are right."""
        return not self.problem

    @property
    def ms(self) -> float:
        """For one row; infinite if unknown."""
        return self.row_ms.get(1, float("inf"))


def race(
    candidates: Sequence[Candidate],
    library: GetLibrary = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[KernelReport]:
    """Check the values of all candidates and time the right ones in turn, width by width.

    In turn, so that a burst of other work meets all alike; the best of some rounds, so that it is seen
    by none. Takes BUDGET_S and at most a few products more.
    """
    for candidate in candidates:
        candidate.available(library)  # waits for a compiler if it must: that is not the kernels' time
    deadline = clock() + BUDGET_S
    problems = [fault(candidate, library, clock) for candidate in candidates]
    right = [c for c, problem in zip(candidates, problems, strict=True) if not problem]
    runners = _pack(right, library, clock, deadline) if len(right) > 1 else []
    x = torch.randn(max(WIDTHS), INPUTS, generator=torch.Generator().manual_seed(5))
    _run(runners, x, clock, deadline)
    of = {runner.candidate.name: runner for runner in runners}
    reports = []
    for candidate, problem in zip(candidates, problems, strict=True):
        runner = of.get(candidate.name)
        times = {} if runner is None else {width: 1000 * s for width, s in runner.best.items()}
        slow = runner is not None and not runner.alive
        reports.append(KernelReport(candidate.name, problem, times, candidate.widths, slow))
    return reports


def fastest(reports: Sequence[KernelReport], widths: tuple[int, ...] = WIDTHS) -> KernelReport | None:
    """The best kernel for forwards of these widths together; None if none is right for all of them.

    Where times are missing the order of the list decides.
    """
    able = [report for report in reports if report.exact and set(widths) <= set(report.widths)]
    running = [report for report in able if not report.gave_up] or able
    if not running:
        return None
    known = [width for width in widths if all(width in report.row_ms for report in running)]

    def cost(report: KernelReport) -> float:
        return sum(FORWARDS[width] * report.row_ms[width] for width in known)

    best = running[0]
    for report in running[1:]:
        needed = ONE_CALL if best.name == Int8Kernel.COMPILED.value else WORTHWHILE
        if cost(report) < needed * cost(best):
            best = report
    return best


@dataclass
class _Runner:
    """A packed candidate and its best seconds by width."""

    candidate: Candidate
    layers: list[Product]
    best: dict[int, float] = field(default_factory=dict)
    alive: bool = True


def _pack(
    candidates: Sequence[Candidate], library: GetLibrary, clock: Callable[[], float], deadline: float
) -> list[_Runner]:
    generator = torch.Generator().manual_seed(3)
    weight = torch.randint(-127, 128, (OUTPUTS, INPUTS), dtype=torch.int8, generator=generator)
    scale = torch.full((OUTPUTS,), 0.01)
    runners = []
    for candidate in candidates:
        layers: list[Product] = []
        # On a slow machine fewer layers must do: the ranking is nearly the same.
        while len(layers) < LAYERS and (not layers or clock() < deadline):
            layers.append(candidate.build(weight.clone(), scale, library))
        runners.append(_Runner(candidate, layers))
    fewest = min(len(runner.layers) for runner in runners)
    for runner in runners:
        del runner.layers[fewest:]
    return runners


def _run(runners: list[_Runner], x: torch.Tensor, clock: Callable[[], float], deadline: float) -> None:
    for turn in range(ROUNDS):
        for width in WIDTHS:
            running = [runner for runner in runners if runner.alive and width in runner.candidate.widths]
            if len(running) < 2 and turn > 0:
                continue  # nobody to compare with; once is for the report
            for runner in running:
                if clock() >= deadline:
                    return
                _time(runner, x[:width], clock)
            _drop_slow(running, x[:width], clock, deadline)


def _time(runner: _Runner, x: torch.Tensor, clock: Callable[[], float]) -> None:
    width = x.shape[0]
    # Wide blocks cost more a layer: equal work for all widths, so that none eats the time.
    layers = runner.layers[: max(1, len(runner.layers) * _FULL // max(width, _FULL))]
    try:
        if width not in runner.best:
            layers[0](x)  # the first call of a shape builds its kernel
        start = clock()
        for layer in layers:
            layer(x)
        seconds = (clock() - start) * LAYERS / len(layers)
    except FAILURES:
        runner.alive = False
        return
    runner.best[width] = min(seconds, runner.best.get(width, seconds))


def _drop_slow(running: list[_Runner], x: torch.Tensor, clock: Callable[[], float], deadline: float) -> None:
    width = x.shape[0]
    for runner in running:
        alive = [other for other in running if other.alive]
        # A kernel for some widths only must not push out those that can do all.
        whole = [other for other in alive if set(other.candidate.widths) >= set(WIDTHS)]
        others = [other.best[width] for other in whole or alive]
        for _ in range(_RETRIES):
            if not runner.alive or runner.best[width] <= GIVE_UP * min(others) or clock() >= deadline:
                break
            _time(runner, x, clock)
        if runner.alive and runner.best[width] > GIVE_UP * min(others):
            runner.alive = False
