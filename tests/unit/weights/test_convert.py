"""The converted form: names, values, alignment, and what a crash leaves behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from inference.api import NUMERICS, Numerics
from inference.errors import CorruptFile, DiskFull, UnsupportedArchitecture, UnsupportedNumerics
from inference.weights import convert, disk, quantize
from inference.weights.directory_source import DirectorySource
from inference.weights.safetensors_file import SafetensorsFile, round_to_bfloat16, widen_bfloat16
from inference.weights.store import prepare
from tests.tiny_gguf import make_tiny_gguf
from tests.tiny_models import make_config, make_tensors, make_tiny
from tests.unit.weights.conftest import Recorder

ROOT = Path(__file__).parents[3]


def stored(path: Path) -> dict[str, np.ndarray]:
    file = SafetensorsFile(path)
    return {
        name: widen_bfloat16(file.view(name)) if file.dtype(name) == "BF16" else file.view(name)
        for name in file.names
    }


@pytest.mark.parametrize("architecture", ("qwen2", "qwen3", "llama"))
def test_dense_form_is_the_fused_original(tmp_path: Path, architecture: str) -> None:
    tied = architecture != "llama"
    model = make_tiny(tmp_path / "m", architecture, tie_word_embeddings=tied)
    original = load_file(model / "model.safetensors")
    prepared = prepare(str(model), "fp32")
    tensors = stored(prepared.weights)
    layer = "model.layers.1."
    expected = {
        "embed.weight": original["model.embed_tokens.weight"],
        "final_norm.weight": original["model.norm.weight"],
        "layers.1.attn_norm.weight": original[layer + "input_layernorm.weight"],
        "layers.1.mlp_norm.weight": original[layer + "post_attention_layernorm.weight"],
        "layers.1.attn.out.weight": original[layer + "self_attn.o_proj.weight"],
        "layers.1.mlp.down.weight": original[layer + "mlp.down_proj.weight"],
        "layers.1.attn.qkv.weight": np.concatenate(
            [original[f"{layer}self_attn.{part}_proj.weight"] for part in "qkv"]
        ),
        "layers.1.mlp.gate_up.weight": np.concatenate(
            [original[f"{layer}mlp.{part}_proj.weight"] for part in ("gate", "up")]
        ),
    }
    if architecture == "qwen2":
        expected["layers.1.attn.qkv.bias"] = np.concatenate(
            [original[f"{layer}self_attn.{part}_proj.bias"] for part in "qkv"]
        )
    if architecture == "qwen3":
        for part in "qk":
            expected[f"layers.1.attn.{part}_norm.weight"] = original[f"{layer}self_attn.{part}_norm.weight"]
    if not tied:
        expected["head.weight"] = original["lm_head.weight"]
    for name, values in expected.items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)
    names = {name.replace("layers.0.", "layers.1.").replace("layers.2.", "layers.1.") for name in tensors}
    assert names == set(expected)
    assert prepared.config["tie_word_embeddings"] is tied
    assert prepared.config["eos_token_ids"] == [503, 505]
    assert prepared.config["rope_scaling"] is None


@pytest.mark.parametrize("tied", (True, False))
def test_int8_form(tmp_path: Path, tied: bool) -> None:
    model = make_tiny(tmp_path / "m", tie_word_embeddings=tied)
    exact = stored(prepare(str(model), "fp32").weights)
    int8 = stored(prepare(str(model), "int8").weights)
    if tied:
        exact["head.weight"] = exact["embed.weight"]
    assert int8["embed.weight"].dtype == np.float16
    for name, values in exact.items():
        if name == "embed.weight":
            np.testing.assert_array_equal(int8[name], values.astype(np.float16))
        elif name.endswith(("norm.weight", ".bias")):
            assert int8[name].dtype == np.float32
            np.testing.assert_array_equal(int8[name], values)
        else:
            scale = int8[name.removesuffix(".weight") + ".scale"]
            assert int8[name].dtype == np.int8 and int8[name].min() >= -127
            assert scale.dtype == np.float32 and scale.shape == values.shape[:1]
            error = np.abs(int8[name] * scale[:, None] - values)
            assert (error <= scale[:, None] * 0.5001).all()


@pytest.mark.parametrize(("numerics", "dtype"), [("bf16", "BF16"), ("fp16", "F16")])
def test_half_forms(tmp_path: Path, numerics: Numerics, dtype: str) -> None:
    model = make_tiny(tmp_path / "m")
    exact = stored(prepare(str(model), "fp32").weights)
    path = prepare(str(model), numerics).weights
    file, half = SafetensorsFile(path), stored(path)
    for name, values in exact.items():
        if name.endswith(("norm.weight", ".bias")):
            np.testing.assert_array_equal(half[name], values)
        else:
            assert file.dtype(name) == dtype
            rounded = (
                values.astype(np.float16) if numerics == "fp16" else widen_bfloat16(round_to_bfloat16(values))
            )
            np.testing.assert_array_equal(half[name], rounded)
            np.testing.assert_allclose(half[name].astype(np.float32), values, rtol=1 / 128, atol=1e-6)


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("overrides", [{}, {"hidden_size": 36, "intermediate_size": 50, "vocab_size": 515}])
def test_every_tensor_is_aligned_and_the_library_reads_it(
    tmp_path: Path, numerics: Numerics, overrides: dict[str, int]
) -> None:
    prepared = prepare(str(make_tiny(tmp_path / "m", head_dim=18, **overrides)), numerics)
    with open(prepared.weights, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    for name, entry in header.items():
        if not name.startswith("__padding__"):
            assert (8 + length + entry["data_offsets"][0]) % 64 == 0, name
    ours = SafetensorsFile(prepared.weights)
    with safe_open(prepared.weights, "pt") as theirs:
        assert {name for name in theirs.keys() if not name.startswith("__padding__")} == set(ours.names)  # noqa: SIM118
        for name in ours.names:
            assert theirs.get_tensor(name).shape == ours.shape(name)
    manifest = json.loads((prepared.path / "manifest.json").read_text())
    assert sorted(manifest["tensors"]) == sorted(ours.names)
    assert convert.damaged_files(prepared.path, Recorder()) == []


def test_bfloat16_directories_and_shards(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file as save_torch

    whole = make_tiny(tmp_path / "whole")
    tensors = load_file(whole / "model.safetensors")
    narrowed = {name: torch.from_numpy(values).to(torch.bfloat16) for name, values in tensors.items()}
    names = sorted(narrowed)
    shards = make_tiny(tmp_path / "shards")
    (shards / "model.safetensors").unlink()
    files = {"model-00001-of-00002.safetensors": names[:20], "model-00002-of-00002.safetensors": names[20:]}
    for file, some in files.items():
        save_torch({name: narrowed[name] for name in some}, shards / file)
    index = {"weight_map": {name: file for file, some in files.items() for name in some}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    found = stored(prepare(str(shards), "fp32").weights)
    expected = narrowed["model.layers.0.mlp.down_proj.weight"].float().numpy()
    np.testing.assert_array_equal(found["layers.0.mlp.down.weight"], expected)
    (shards / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CorruptFile, match="00002"):
        prepare(str(shards), "bf16")


def test_gguf_converts_like_its_directory(tmp_path: Path) -> None:
    ours = stored(prepare(str(make_tiny_gguf(tmp_path / "m.gguf", "llama")), "int8").weights)
    theirs = stored(prepare(str(make_tiny(tmp_path / "m", "llama")), "int8").weights)
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_key_covers_source_numerics_and_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_tiny(tmp_path / "m")
    first = prepare(str(model), "int8")
    assert first.converted and not prepare(str(model), "int8").converted
    make_tiny(model, seed=1)
    changed = prepare(str(model), "int8")
    assert changed.converted and changed.path != first.path
    monkeypatch.setattr(quantize, "SCHEME", "another")
    newer = prepare(str(model), "int8")
    assert newer.path not in (first.path, changed.path)
    # What nothing would find again does not stay on the disk.
    assert not first.path.exists() and not changed.path.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "manifest.json"])
def test_damaged_conversion_is_rebuilt(tmp_path: Path, name: str) -> None:
    model = make_tiny(tmp_path / "m")
    prepared = prepare(str(model), "int8")
    whole = prepared.weights.read_bytes()
    damaged = prepared.path / name
    damaged.write_bytes(damaged.read_bytes()[:-9])
    again = prepare(str(model), "int8")
    assert again.converted and again.path == prepared.path
    assert again.weights.read_bytes() == whole


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    model = make_tiny(tmp_path / "m")
    tensors = load_file(model / "model.safetensors")
    tensors["model.layers.2.mlp.up_proj.weight"][5, 7] = np.nan
    save_file(tensors, model / "model.safetensors")
    with pytest.raises(CorruptFile, match="up_proj"):
        prepare(str(model), "int8")
    assert not list((tmp_path / "draftline-home" / "models").iterdir())


def test_large_values(tmp_path: Path) -> None:
    model = make_tiny(tmp_path / "m")
    tensors = load_file(model / "model.safetensors")
    tensors["model.embed_tokens.weight"][5, 7] = 1e6
    save_file(tensors, model / "model.safetensors")
    assert SafetensorsFile(prepare(str(model), "int8").weights).dtype("embed.weight") == "BF16"
    with pytest.raises(UnsupportedNumerics):
        prepare(str(model), "fp16")


def test_directories_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    for name, words in (
        ("config.json", "config"),
        ("tokenizer.json", "tokenizer"),
        ("model.safetensors", "safe"),
    ):
        model = make_tiny(tmp_path / words)
        (model / name).unlink()
        with pytest.raises(UnsupportedArchitecture, match=words) as caught:
            prepare(str(model), "int8")
        assert caught.value.next_step
    with pytest.raises(UnsupportedArchitecture, match="gpt_bigcode"):
        prepare(str(make_tiny(tmp_path / "a", model_type="gpt_bigcode")), "int8")
    with pytest.raises(UnsupportedArchitecture, match="quantised"):
        prepare(str(make_tiny(tmp_path / "b", quantization_config={"bits": 4})), "int8")
    model = make_tiny(tmp_path / "c")
    (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(CorruptFile, match="promises"):
        prepare(str(model), "int8")


def test_newer_config_files_keep_positions_elsewhere(tmp_path: Path) -> None:
    model = make_tiny(tmp_path / "m", rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    config = json.loads((model / "config.json").read_text())
    del config["rope_theta"]
    (model / "config.json").write_text(json.dumps(config))
    found = DirectorySource(model).config()
    assert (found["rope_theta"], found["rope_scaling"]) == (5e5, None)


def test_disk_full_before_and_during(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    model = make_tiny(tmp_path / "m")
    with monkeypatch.context() as patch:
        patch.setattr(disk.shutil, "disk_usage", lambda path: os.statvfs_result and _Usage(1, 1, 0))
        with pytest.raises(DiskFull, match="free"):
            prepare(str(model), "int8")

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(convert.SafetensorsWriter, "add", no_space)
        with pytest.raises(DiskFull, match="became full"):
            prepare(str(model), "int8")
    assert not list((home / "models").iterdir())
    assert prepare(str(model), "int8").converted


class _Usage:
    def __init__(self, total: int, used: int, free: int) -> None:
        self.total, self.used, self.free = total, used, free


SLOW_CONVERSION = """
    import sys, time
    from inference.weights import convert
    from inference.weights.store import prepare
    add = convert.SafetensorsWriter.add
    def slow(self, name, values):
        add(self, name, values)
        self._file.flush()
        print(name, flush=True)
        time.sleep(0.2)
    convert.SafetensorsWriter.add = slow
    prepare(sys.argv[1], "int8")
"""


def test_kill_in_the_middle_leaves_nothing_in_the_way(tmp_path: Path, home: Path) -> None:
    model = make_tiny(tmp_path / "m")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW_CONVERSION), str(model)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (leftover,) = (home / "models").iterdir()
    assert leftover.name.endswith(".tmp")
    start = time.perf_counter()
    assert prepare(str(model), "int8").converted
    assert time.perf_counter() - start < 10  # no waiting for the dead process's lock
    assert [path.name.endswith(".tmp") for path in (home / "models").iterdir()] == [False]


def test_two_processes_convert_once(tmp_path: Path) -> None:
    model = make_tiny(tmp_path / "m")
    command = [sys.executable, "-c", textwrap.dedent(SLOW_CONVERSION), str(model)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    written = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(bool(output) for output in written) == [False, True]


def test_quantize_rows_handles_zero_and_tiny_rows() -> None:
    weight = make_tensors(make_config())["model.layers.0.mlp.up_proj.weight"][:4].copy()
    weight[1] = 0
    weight[2] = 1e-44
    values, scale = quantize.quantize_rows(weight)
    assert scale[1] == 0 and not values[1].any()
    assert np.isfinite(scale).all()
    assert np.abs(values[0]).max() == 127
