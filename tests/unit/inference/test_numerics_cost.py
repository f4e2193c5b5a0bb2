"""The doctor's comparison of numerics: bytes are those of the files, and what cannot run says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inference.api import EngineConfig
from inference.diagnosis import numerics as comparison
from inference.diagnosis.numerics import COMPARED, compare, linear_ms, other_bytes, weight_bytes
from inference.errors import UnsupportedNumerics
from inference.runtime import load_runtime
from inference.weights.safetensors_file import SafetensorsFile
from inference.weights.store import prepare
from tests.tiny_models import make_tiny


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_bytes_are_those_of_the_converted_files(
    tmp_path: Path, tiny_home: Path, architecture: str, tied: bool
) -> None:
    model = str(make_tiny(tmp_path / "m", architecture, tie_word_embeddings=tied))
    for numerics in COMPARED:
        runtime = load_runtime(EngineConfig(model=model, numerics=numerics, context=256), lambda m, f: None)
        file = SafetensorsFile(prepare(model, numerics).weights)
        stored = sum(file.view(name).nbytes for name in file.names)
        assert weight_bytes(runtime.config, numerics, tied) + other_bytes(runtime.decoder.weights) == stored


def test_only_a_model_without_a_mix_counts_as_loaded(tmp_path: Path, tiny_home: Path) -> None:
    model = str(make_tiny(tmp_path / "m"))
    for numerics, mixed, loaded in (("nf4", "", ["nf4"]), ("int8", "head=bf16", []), ("fp16", "", [])):
        config = EngineConfig(model=model, numerics=numerics, mixed=mixed, context=256)  # type: ignore[arg-type]
        runtime = load_runtime(config, lambda m, f: None)
        with torch.inference_mode():
            costs = compare(runtime)
        assert [cost.numerics for cost in costs] == list(COMPARED)
        assert [cost.numerics for cost in costs if cost.loaded] == loaded
        assert all(cost.linear_ms[16] > 0 and not cost.reason for cost in costs)


def test_what_does_not_run_here_says_why(
    tmp_path: Path, tiny_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = load_runtime(EngineConfig(model=str(make_tiny(tmp_path / "m")), context=256), lambda m, f: None)
    elsewhere = replace(runtime.hardware, device=torch.device("mps"))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(UnsupportedNumerics, match="int8 runs on the CPU only"):
        linear_ms(runtime.config, "int8", elsewhere)

    def missing(*_: object) -> dict[int, float]:
        raise UnsupportedNumerics("No bitsandbytes.")

    monkeypatch.setattr(comparison, "linear_ms", missing)
    costs = compare(runtime)
    assert {cost.reason for cost in costs} == {"No bitsandbytes."}
    assert all(cost.weight_bytes > 0 and cost.linear_ms == {} for cost in costs)


def test_large_weights_are_cut_and_their_time_scaled(
    tmp_path: Path, tiny_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = load_runtime(EngineConfig(model=str(make_tiny(tmp_path / "m")), context=256), lambda m, f: None)
    monkeypatch.setattr(comparison, "_ms", lambda run, device: 1.0 + 0.0 * len(run()))
    whole = linear_ms(runtime.config, "bf16", runtime.hardware)
    assert whole == {1: 3 * 4 + 1, 16: 3 * 4 + 1}  # three layers of four linear layers, and the head
    monkeypatch.setattr(comparison, "MOST_NUMBERS", 64 * 64)
    cut = linear_ms(runtime.config, "bf16", runtime.hardware)
    # Outputs 128, 64, 320, 64 and 512, each measured with 64 of them.
    assert cut[1] == pytest.approx(3 * (2 + 1 + 5 + 1) + 8)
