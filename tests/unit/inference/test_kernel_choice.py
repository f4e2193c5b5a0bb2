"""The int8 kernel: right before fast, probed once, checked at every start, and never lost to a bad file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from inference.api import EngineConfig
from inference.hardware import probe
from inference.model.config import ModelConfig
from inference.model.linear.int8 import Int8Kernel
from inference.probe import choice, identity, race, stored
from inference.probe.candidates import CANDIDATES, WIDTHS, Candidate, GetLibrary, Product
from inference.probe.choice import choose_int8_kernel
from inference.probe.race import KernelReport, fastest
from inference.probe.values import exact_product, fault
from tests.tiny_models import make_config


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@dataclass
class _Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class _Made:
    """A candidate with right values (unless told otherwise) and made-up times."""

    def __init__(self, clock: _Clock, kernel: Int8Kernel, ms: Callable[[int], float]) -> None:
        self.clock, self.kernel, self.ms = clock, kernel, ms
        self.right, self.here, self.calls, self.built = True, True, 0, 0

    def candidate(self, widths: tuple[int, ...] = WIDTHS) -> Candidate:
        return Candidate(self.kernel, self._build, lambda library: self.here, widths)

    def _build(self, weight: torch.Tensor, scale: torch.Tensor, library: GetLibrary) -> Product:
        self.built += 1

        def product(x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.clock.now += self.ms(x.shape[0]) / 1000
            if weight.shape[0] == race.OUTPUTS:
                return x  # timed only
            right = exact_product(x, weight, scale)
            return right if self.right else right + 1

        return product


def _machine(
    one: Callable[[int], float], two: Callable[[int], float], three: Callable[[int], float] = lambda rows: 1.0
) -> tuple[_Clock, list[_Made]]:
    clock = _Clock()
    kernels = (Int8Kernel.ONEDNN, Int8Kernel.ONEDNN_SPLIT, Int8Kernel.FLOAT)
    return clock, [_Made(clock, kernel, ms) for kernel, ms in zip(kernels, (one, two, three), strict=True)]


def _choose(clock: _Clock, made: list[_Made]) -> choice.KernelChoice:
    return choose_int8_kernel(None, [m.candidate() for m in made], clock)


def test_the_fastest_right_kernel_wins_by_the_widths_of_decoding() -> None:
    # The second is dearer for chunks of the prompt, and cheaper where most forwards are.
    clock, made = _machine(lambda rows: 0.2, lambda rows: 0.1 if rows < 100 else 0.4)
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.ONEDNN_SPLIT and chosen.fresh
    assert set(chosen.reports[0].row_ms) == set(WIDTHS)
    made[1].right = False
    stored.forget()
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.ONEDNN
    assert [report.problem for report in chosen.reports] == ["", "wrong values", ""]


def test_equals_are_taken_in_the_order_of_the_list() -> None:
    clock, made = _machine(lambda rows: 0.100, lambda rows: 0.098)
    assert _choose(clock, made).kernel is Int8Kernel.ONEDNN


def test_one_burst_of_other_work_decides_nothing() -> None:
    clock, made = _machine(lambda rows: 0.1, lambda rows: 0.3, lambda rows: 0.3)

    def disturbed(rows: int) -> float:
        # One time in seven the core is away for a slice: sums of layers, and the check, are hit.
        return 8.0 if made[0].calls % 7 == 3 else 0.1

    made[0].ms = disturbed
    assert _choose(clock, made).kernel is Int8Kernel.ONEDNN


def test_the_time_is_bounded_also_by_a_reference_implementation() -> None:
    clock, made = _machine(lambda rows: 0.2 * rows, lambda rows: 150.0 * rows, lambda rows: 2.0 + rows)
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.ONEDNN
    assert chosen.reports[1].problem == "too slow to be checked"
    assert made[1].calls == 3
    clock, made = _machine(lambda rows: 0.1, lambda rows: 5.0, lambda rows: 15.0)
    stored.forget()
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.ONEDNN and clock.now <= race.BUDGET_S + 0.1
    assert chosen.reports[1].gave_up and 128 not in chosen.reports[1].row_ms


def test_without_time_the_list_decides() -> None:
    clock, made = _machine(lambda rows: 19.0, lambda rows: 15.0, lambda rows: 15.0)
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.ONEDNN and chosen.reports[2].row_ms == {}


def test_a_kernel_for_some_widths_only() -> None:
    narrow = (1, 8)
    reports = [
        KernelReport("all", "", dict.fromkeys(WIDTHS, 1.0)),
        KernelReport("narrow", "", dict.fromkeys(narrow, 0.1), narrow),
    ]
    assert fastest(reports) == reports[0]
    assert fastest(reports, narrow) == reports[1]
    assert fastest(reports, (1, 16)) == reports[0]
    assert fastest([KernelReport("wrong", "wrong values")]) is None


def test_a_fast_kernel_for_some_widths_leaves_the_others_in_the_race() -> None:
    clock, made = _machine(lambda rows: 0.01, lambda rows: 0.2, lambda rows: 0.3)
    reports = race.race([made[0].candidate((1, 8)), made[1].candidate(), made[2].candidate()], None, clock)
    assert set(reports[0].row_ms) == {1, 8}
    assert all(set(report.row_ms) == set(WIDTHS) and not report.gave_up for report in reports[1:])
    best, narrow = fastest(reports), fastest(reports, (1, 8))
    assert best is not None and best.name == "onednn-u8-split"
    assert narrow is not None and narrow.name == "onednn-u8"


def test_a_failing_kernel_is_no_candidate() -> None:
    clock, made = _machine(lambda rows: 0.1, lambda rows: 0.2)

    def broken(rows: int) -> float:
        raise RuntimeError("no such\ninstruction")

    made[0].ms = broken
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.ONEDNN_SPLIT
    assert chosen.reports[0].problem == "did not run: no such"
    made[0].ms, made[0].here, made[1].right, made[2].right = lambda rows: 0.1, False, False, False
    stored.forget()
    chosen = _choose(clock, made)
    assert chosen.kernel is Int8Kernel.FLOAT and chosen.file is None
    assert chosen.reports[0].problem == "not here"


def test_later_starts_check_the_stored_kernel_only(own_home: Path) -> None:
    clock, made = _machine(lambda rows: 0.2, lambda rows: 0.1)
    first = _choose(clock, made)
    assert first.file is not None and first.file.parent == own_home / "kernels"
    # Else compiled functions would not be loaded from it.
    assert first.file.parent.stat().st_mode & 0o077 == 0
    calls = [m.calls for m in made]
    again = _choose(clock, made)
    assert not again.fresh and again.kernel is first.kernel and again.reports == first.reports
    assert made[0].calls == calls[0] and made[2].calls == calls[2]
    assert 0 < made[1].calls - calls[1] < 20
    stored.forget()
    assert _choose(clock, made).fresh


def test_a_stored_kernel_that_turned_wrong_is_replaced() -> None:
    clock, made = _machine(lambda rows: 0.2, lambda rows: 0.1)
    assert _choose(clock, made).kernel is Int8Kernel.ONEDNN_SPLIT
    made[1].right = False
    chosen = _choose(clock, made)
    assert chosen.fresh and chosen.kernel is Int8Kernel.ONEDNN
    assert "onednn-u8-split" in chosen.notes[0] and "wrong values" in chosen.notes[0]
    again = _choose(clock, made)
    assert not again.fresh and again.kernel is Int8Kernel.ONEDNN and again.notes == ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: json.dumps({**json.loads(text), "format": 99}),
        lambda text: json.dumps({**json.loads(text), "identity": {"processor": "another"}}),
        lambda text: json.dumps({**json.loads(text), "kernel": "no-such-kernel"}),
        lambda text: json.dumps({**json.loads(text), "kernel": ["float-blocks"]}),
        lambda text: json.dumps({**json.loads(text), "reports": [{"name": "onednn-u8"}]}),
        lambda text: text.replace('"1": ', '"one": '),
        lambda text: text.replace('"1": ', '"1": NaN, "7": '),
        lambda text: text.replace('"widths": [', '"widths": [null, '),
    ],
)
def test_a_damaged_or_foreign_file_is_ignored_and_rewritten(damage: Callable[[str], str]) -> None:
    clock, made = _machine(lambda rows: 0.2, lambda rows: 0.1)
    first = _choose(clock, made)
    assert first.file is not None
    good = first.file.read_text()
    bad = damage(good)
    assert bad != good
    first.file.write_text(bad)
    chosen = _choose(clock, made)
    assert chosen.fresh and chosen.kernel is Int8Kernel.ONEDNN_SPLIT and chosen.notes == ()
    assert json.loads(first.file.read_text())["kernel"] == "onednn-u8-split"
    assert not _choose(clock, made).fresh
    assert list(first.file.parent.iterdir()) == [first.file]  # nothing temporary is left


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("DRAFTLINE_HOME", str(blocked))
    clock, made = _machine(lambda rows: 0.2, lambda rows: 0.1)
    for _ in range(2):
        chosen = _choose(clock, made)
        assert chosen.kernel is Int8Kernel.ONEDNN_SPLIT and chosen.fresh and chosen.file is None
        assert "cannot be stored" in chosen.notes[0]
    stored.forget()


def test_another_machine_probes_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, made = _machine(lambda rows: 0.2, lambda rows: 0.1)
    files = {_choose(clock, made).file}
    monkeypatch.setattr(identity, "processor", lambda: "another processor")
    files.add(_choose(clock, made).file)
    monkeypatch.setattr(identity, "features", lambda: "flags: other")
    files.add(_choose(clock, made).file)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2_VNNI")
    files.add(_choose(clock, made).file)
    monkeypatch.setattr(identity, "_sources", lambda: "another version")
    files.add(_choose(clock, made).file)
    made[0].here = False  # as when a compiler comes or goes
    files.add(_choose(clock, made).file)
    assert len(files) == 6
    assert not _choose(clock, made).fresh


def test_the_last_real_candidate_is_right_anywhere() -> None:
    assert fault(CANDIDATES[-1]) == ""
    assert CANDIDATES[-1].kernel is Int8Kernel.FLOAT
    assert len({candidate.name for candidate in CANDIDATES}) == len(CANDIDATES)


def test_the_probe_of_hardware_says_what_it_chose() -> None:
    before = torch.get_num_threads()
    try:
        model = ModelConfig.from_hf(make_config())
        first = probe(EngineConfig(threads=1), model)
        again = probe(EngineConfig(threads=1), model)
        other = probe(EngineConfig(threads=1, numerics="fp32"), model)
    finally:
        torch.set_num_threads(before)
    assert first.kernel_choice is not None and first.kernel_choice.fresh
    assert again.kernel_choice is not None and not again.kernel_choice.fresh
    assert again.int8_kernel is first.int8_kernel
    assert replace(first, kernel_choice=None) == replace(again, kernel_choice=None)
    assert other.kernel_choice is None and other.int8_kernel is None
