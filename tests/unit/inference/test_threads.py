"""One thread while a core is busy, all again when it is free; the bits never change."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inference.api import EngineConfig
from inference.runtime import load_runtime
from inference.threads import FIRST_PAUSE_S, PATIENCE, ThreadGovernor


class _World:
    def __init__(self, threads: int = 2, enabled: bool = True) -> None:
        self.now, self.threads = 0.0, threads
        self.governor = ThreadGovernor(threads, enabled, self._set, lambda: self.now)

    def _set(self, threads: int) -> None:
        self.threads = threads

    def forward(self, ms: float, rows: int = 1) -> None:
        self.governor.before_forward()
        self.governor.after_forward(rows, ms)
        self.now += ms / 1000


def test_gives_way_and_comes_back() -> None:
    world = _World()
    for _ in range(5):
        world.forward(30)
    for _ in range(PATIENCE):
        assert world.threads == 2
        world.forward(300)
    assert world.threads == 1
    world.forward(60)
    assert world.threads == 1, "what one thread takes says nothing about two"
    world.now += FIRST_PAUSE_S
    world.forward(30)
    assert world.threads == 2


def test_pauses_grow_while_it_stays_busy() -> None:
    world = _World()
    world.forward(30)
    for _ in range(PATIENCE):
        world.forward(300)
    world.now += FIRST_PAUSE_S
    world.forward(300)
    assert world.threads == 1
    world.now += FIRST_PAUSE_S
    world.forward(300)
    assert world.threads == 1
    world.now += FIRST_PAUSE_S
    world.forward(30)
    assert world.threads == 2


def test_single_stalls_and_larger_blocks_are_no_reason() -> None:
    world = _World()
    for _ in range(10):
        world.forward(30)
        world.forward(300)
        world.forward(150, rows=128)
    assert world.threads == 2


@pytest.mark.parametrize(("threads", "enabled"), [(1, True), (4, False)])
def test_nothing_to_do(threads: int, enabled: bool) -> None:
    world = _World(threads, enabled)
    for ms in (30, 30, 300, 300, 300, 300):
        world.forward(ms)
    assert world.threads == threads


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
