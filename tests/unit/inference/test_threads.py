"""Fewer threads while cores are busy, all again when they are free; the bits never change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from inference import openmp
from inference.api import EngineConfig
from inference.core_watch import SHORTEST_S, CoreWatch, Counters, read_counters
from inference.runtime import load_runtime
from inference.threads import FIRST_PAUSE_S, LONGEST_PAUSE_S, LOOK_S, ThreadGovernor
from tests.unit.inference.busy_machine import Load, Machine, governor, total_ms


class _World:
    """Forwards of given times; ``free`` are the cores that a look would find, None if it cannot look."""

    def __init__(self, threads: int = 2, enabled: bool = True) -> None:
        self.now, self.used, self.threads = 0.0, 0.0, threads
        self.free: float | None = None
        watch = CoreWatch(threads)
        watch.free = lambda: self.free  # type: ignore[method-assign]
        self.governor = ThreadGovernor(
            threads, enabled, self._set, lambda: self.now, watch, lambda: self.used
        )

    def _set(self, threads: int) -> None:
        self.threads = threads

    def forward(self, ms: float, rows: int = 1, share: float = 1.0) -> None:
        self.governor.before_forward()
        self.now += ms / 1000
        self.used += share * self.threads * ms / 1000
        self.governor.after_forward(rows, ms)


def test_gives_way_at_the_first_bad_forward_and_comes_back() -> None:
    world = _World()
    for _ in range(5):
        world.forward(30)
    world.forward(300)
    assert world.threads == 1 and world.governor.reduced
    world.forward(55)
    assert world.threads == 1
    world.now += FIRST_PAUSE_S
    world.forward(30)
    assert world.threads == 2 and not world.governor.reduced
    for _ in range(50):
        world.forward(30)
    assert world.threads == 2


def test_small_disturbances_are_borne() -> None:
    world = _World()
    for ms in (30, 31, 30, 50, 30, 30, 65, 30, 30, 80, 30):
        world.forward(ms)
    for _ in range(5):
        world.forward(30)
        world.forward(150, rows=128)  # a size of its own
    assert world.threads == 2
    for index in range(600):  # a longer context makes every forward longer, little by little
        world.forward(30 + index * 0.1)
    assert world.threads == 2


def test_what_is_twice_as_slow_for_long_gives_way_too() -> None:
    world = _World()
    world.forward(30)
    for _ in range(4):
        world.forward(80)
    assert world.threads == 1


def test_pauses_grow_with_tries_that_fail() -> None:
    world = _World()
    for _ in range(30):
        world.forward(30)
    world.forward(300)
    tries = []
    while len(tries) < 9:
        if world.threads == 2:
            raise AssertionError("a bad try must be given up at once")
        before = world.now
        while True:
            world.now += 0.05
            world.governor.before_forward()
            if world.threads == 2:
                break
            world.governor.after_forward(1, 55)
        tries.append(round(world.now - before, 3))
        world.governor.after_forward(1, 300)
    assert tries == sorted(tries)
    assert tries[0] < 2 * FIRST_PAUSE_S and tries[-1] >= LONGEST_PAUSE_S
    world.now += LONGEST_PAUSE_S
    for _ in range(30):
        world.forward(30)
    world.forward(300)
    world.now += FIRST_PAUSE_S
    world.forward(30)
    assert world.threads == 2, "after a calm time the first pause is short again"


def test_no_try_while_others_keep_the_cores() -> None:
    world = _World()
    world.forward(30)
    world.free = 1.0
    world.forward(300)
    for _ in range(100):
        world.forward(55)
    assert world.threads == 1
    world.free = 1.8
    world.now += LOOK_S
    world.forward(30)
    assert world.threads == 2
    world.free = 1.0
    world.forward(300)
    world.now += FIRST_PAUSE_S + LONGEST_PAUSE_S + 1
    world.forward(30)
    assert world.threads == 2, "in the end only a try tells"


def test_a_machine_that_became_slower_keeps_all_threads() -> None:
    """As on battery: fewer threads are slower still, so the try succeeds though far from the best time."""
    world = _World()
    for _ in range(10):
        world.forward(30)
    used = []
    for _ in range(400):
        world.governor.before_forward()
        world.now += 0.1
        world.governor.after_forward(1, 75 if world.threads == 2 else 140)
        used.append(world.threads)
    assert 1 in used[:50] and used[50:] == [2] * 350


def test_busy_from_the_start() -> None:
    world = _World()
    for _ in range(3):
        world.forward(250, share=0.55)  # no better time is known, but the threads did not run
    assert world.threads == 1
    world = _World()
    for _ in range(20):
        world.forward(250, share=0.9)  # a slow machine
    assert world.threads == 2


@pytest.mark.parametrize("threads", [7, 8])
def test_many_threads_are_halved_not_dropped(threads: int) -> None:
    world = _World(threads)
    for _ in range(3):
        world.forward(10)
    world.forward(60)
    assert world.threads == 4
    world.forward(14)
    world.now += 2 * FIRST_PAUSE_S
    world.forward(10)
    assert world.threads == threads


@pytest.mark.parametrize(("threads", "enabled"), [(1, True), (4, False)])
def test_nothing_to_do(threads: int, enabled: bool) -> None:
    world = _World(threads, enabled)
    for ms in (30, 30, 300, 300, 300, 300):
        world.forward(ms)
    assert world.threads == threads


def _from(start_s: float) -> Load:
    return lambda second: 1.0 if second >= start_s else 0.0


def _bursts(busy_s: float, period_s: float) -> Load:
    return lambda second: 1.0 if second % period_s < busy_s else 0.0


@pytest.mark.parametrize("policy", ["governor", "governor without looks"])
def test_simulated_policies(policy: str) -> None:
    """Sums of simulated times: near the better of the fixed choices, and never far from the best."""
    idle, busy, late = _from(float("inf")), _from(0.0), _from(10.0)
    assert total_ms(policy, idle) == total_ms("all", idle)
    assert total_ms(policy, busy) < 1.05 * total_ms("one", busy) < 0.3 * total_ms("all", busy)
    assert total_ms(policy, late) < total_ms("one", late)
    assert total_ms(policy, late) < 1.01 * total_ms("three strikes", late)
    long = _bursts(2.0, 4.0)
    fixed = min(total_ms("one", long), total_ms("all", long))
    assert total_ms(policy, long) < (0.85 if policy == "governor" else 1.0) * fixed
    assert total_ms(policy, long) < total_ms("three strikes", long)
    short = _bursts(0.05, 1.0)
    assert total_ms(policy, short) < 1.05 * total_ms("all", short)


def test_simulated_bursts_hit_few_forwards() -> None:
    """What a user feels are the worst forwards: with one core gone, three to ten times a normal one."""
    machine = Machine(_bursts(2.0, 4.0))
    acting, slow = governor(machine), 0
    for _ in range(600):
        acting.before_forward()
        ms = machine.forward()
        acting.after_forward(1, ms)
        slow += ms > 100
    fixed = Machine(_bursts(2.0, 4.0))
    assert slow < 0.3 * sum(fixed.forward() > 100 for _ in range(600))


def test_simulated_throttling_is_no_reason_to_use_one_thread() -> None:
    machine = Machine(lambda second: 0.0)
    acting, used = governor(machine), []
    for index in range(400):
        acting.before_forward()
        acting.after_forward(1, machine.forward(factor=1.0 if index < 50 else 2.5))
        used.append(machine.threads)
    assert used[-200:] == [2] * 200


def test_core_watch() -> None:
    counters = [Counters(0.0, 10.0, 4.0), Counters(1.0, 12.5, 5.5), Counters(1.01, 12.5, 5.5)]
    watch = CoreWatch(4, iter(counters).__next__)
    watch.start()
    assert watch.free() == 3.0  # 2.5 seconds of cores were used, 1.5 of them by us
    assert watch.free() is None  # too short for the ticks

    def refuse() -> Counters:
        raise OSError("no such file")

    blind = CoreWatch(4, refuse)
    blind.start()
    assert blind.free() is None


def test_the_counters_of_this_machine_run() -> None:
    first = read_counters()
    end = first.wall + SHORTEST_S
    while read_counters().wall < end:
        pass
    last = read_counters()
    assert last.own > first.own and last.busy >= first.busy


@pytest.mark.parametrize(
    ("given", "seen"),
    [({}, openmp.SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, None)],
)
def test_spinning_is_limited_unless_the_user_says_otherwise(given: dict[str, str], seen: str | None) -> None:
    """The variable is there while torch is loaded, and no child of ours inherits it."""
    program = (
        "import os, sys\n"
        "class Spy:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'torch': print(os.environ.get('GOMP_SPINCOUNT'))\n"
        "sys.meta_path.insert(0, Spy())\n"
        "from inference.openmp import import_torch\n"
        "assert 'torch' not in sys.modules\n"
        "import_torch()\n"
        "assert 'torch' in sys.modules\n"
        "import_torch()\n"
        "print(os.environ.get('GOMP_SPINCOUNT'))\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**clean, **given},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(seen), str(given.get("GOMP_SPINCOUNT"))]


def test_bits_do_not_depend_on_the_number_of_threads(looping_model: Path, tiny_home: Path) -> None:
    config = EngineConfig(model=str(looping_model), context=1024)
    runtime = load_runtime(config, lambda message, fraction: None)
    tokens = torch.randint(0, 500, (700,), generator=torch.Generator().manual_seed(2)).tolist()
    before = torch.get_num_threads()
    results = []
    try:
        for threads, chunk in ((1, 128), (2, 128), (3, 239), (5, 231)):
            torch.set_num_threads(threads)
            slot = runtime.decoder.new_slot(1024)
            with torch.inference_mode():
                parts = [
                    runtime.decoder.forward(tokens[i : i + chunk], slot) for i in range(0, len(tokens), chunk)
                ]
            results.append(torch.cat([part for part in parts if part is not None]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results[1:])
