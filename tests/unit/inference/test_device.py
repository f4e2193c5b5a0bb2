"""What is done on which device; the devices themselves are not there in tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inference import generation, hardware
from inference.api import EngineConfig
from inference.errors import UnsupportedNumerics
from inference.hardware import choose_device
from inference.model.device import computes, synchronize
from inference.runtime import load_runtime


def test_each_device_is_waited_for_in_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waited.append(f"{device}"))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waited.append("mps"))
    for kind in ("cpu", "cuda", "mps", "cuda:1"):
        synchronize(torch.device(kind))
    assert waited == ["cuda", "mps", "cuda:1"]


def test_a_forward_is_over_when_the_device_says_so(
    looping_model: Path, tiny_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = EngineConfig(model=str(looping_model), numerics="fp32", context=512)
    runtime = load_runtime(options, lambda message, fraction: None)
    now = [0.0]
    monkeypatch.setattr(generation.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(generation, "synchronize", lambda device: now.__setitem__(0, now[0] + 0.5))
    with torch.inference_mode():
        _, ms = runtime.generator.forward([1, 2], runtime.decoder.new_slot(64))
    assert ms == 500.0


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_devices_that_are_missing_or_too_old(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"cuda": False, "mps": False}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: present["cuda"])
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: present["mps"])
    config = EngineConfig(device=kind, numerics="bf16")
    with pytest.raises(UnsupportedNumerics, match=f"no usable {kind}"):
        choose_device(config)
    present[kind] = True
    with pytest.raises(UnsupportedNumerics, match="int8 runs on the CPU only"):
        choose_device(EngineConfig(device=kind, numerics="int8"))
    tried: list[tuple[str, torch.dtype]] = []

    def old(device: torch.device, dtype: torch.dtype) -> bool:
        tried.append((device.type, dtype))
        return dtype is not torch.bfloat16

    monkeypatch.setattr(hardware, "computes", old)
    with pytest.raises(UnsupportedNumerics, match="cannot compute in bf16") as caught:
        choose_device(config)
    assert "fp16" in caught.value.next_step
    assert choose_device(EngineConfig(device=kind, numerics="fp16")) == torch.device(kind)
    assert tried == [(kind, torch.bfloat16), (kind, torch.float16)]


def test_an_unknown_device() -> None:
    with pytest.raises(UnsupportedNumerics, match="Unknown device"):
        choose_device(EngineConfig(device="tpu"))


def test_a_type_that_fails_does_not_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert computes(torch.device("cpu"), torch.float64)

    def refuse(*shape: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        raise TypeError("BFloat16 is not supported on MPS")

    monkeypatch.setattr(torch, "ones", refuse)
    assert not computes(torch.device("mps"), torch.bfloat16)
