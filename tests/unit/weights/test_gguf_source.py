"""A GGUF file and the directory it was made from are the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.weights import layout
from inference.weights.gguf_config import llama3_factors
from inference.weights.source import open_source, read
from tests.tiny_gguf import make_tiny_gguf
from tests.tiny_models import make_tiny

ARCHITECTURES = ("qwen2", "qwen3", "llama", "mistral", "granite")


@pytest.mark.parametrize("tied", (True, False))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_same_tensors_and_config(tmp_path: Path, architecture: str, tied: bool) -> None:
    options = {"tie_word_embeddings": tied}
    if architecture in ("llama", "granite"):
        options["attention_bias"] = True  # biases are permuted too
    ours = open_source(make_tiny_gguf(tmp_path / "m.gguf", architecture, **options))
    theirs = open_source(make_tiny(tmp_path / "m", architecture, **options))
    assert sorted(ours.names()) == sorted(theirs.names())
    for name in theirs.names():
        np.testing.assert_array_equal(read(ours, name), read(theirs, name), err_msg=name)
    found, expected = ours.config(), theirs.config()
    assert found["eos_token_ids"] == [expected["eos_token_id"]]
    for key in (
        "model_type",
        "vocab_size",
        "hidden_size",
        "head_dim",
        "num_key_value_heads",
        "tie_word_embeddings",
        "rope_scaling",
    ):
        assert found[key] == expected[key], key
    for key in expected:
        if key.endswith(("_multiplier", "_scaling", "_theta", "_eps")) and expected[key] is not None:
            assert found[key] == pytest.approx(expected[key]), key


def test_llama3_positions(tmp_path: Path) -> None:
    head_dim, theta = 32, 500000.0
    factors = llama3_factors(head_dim, theta, 32.0, 1.0, 4.0, 8192)
    assert factors[0] == 1.0 and factors[-1] == 32.0
    path = make_tiny_gguf(
        tmp_path / "m.gguf",
        "llama",
        rope_theta=theta,
        head_dim=head_dim,
        extra_tensors={"rope_freqs.weight": factors},
    )
    source = open_source(path)
    assert source.config()["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    assert not any("rope" in name for name in source.names())


def test_llama3_factors_are_those_of_transformers() -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaling = {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = LlamaConfig(hidden_size=256, num_attention_heads=2, rope_parameters=scaling)
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 500000.0 ** (-np.arange(0, 128, 2) / 128)
    ours = plain / llama3_factors(128, 500000.0, 8.0, 1.0, 4.0, 8192)
    np.testing.assert_allclose(frequencies.numpy(), ours, rtol=1e-5)


def test_foreign_positions_are_refused(tmp_path: Path) -> None:
    factors = np.linspace(1, 7, 8).astype(np.float32)
    path = make_tiny_gguf(tmp_path / "m.gguf", "llama", extra_tensors={"rope_freqs.weight": factors})
    with pytest.raises(UnsupportedArchitecture, match="positions"):
        open_source(path).config()


def test_unknown_architecture_is_named(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "m.gguf", "qwen2")
    data = path.read_bytes().replace(b"qwen2", b"gemma")
    path.write_bytes(data)
    with pytest.raises(UnsupportedArchitecture, match="gemma"):
        open_source(path).config()


def test_missing_key_and_missing_tensor_are_named(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "m.gguf", "qwen2")
    path.write_bytes(path.read_bytes().replace(b"qwen2.block_count", b"qwen2.black_count"))
    with pytest.raises(CorruptFile, match=r"qwen2\.block_count"):
        open_source(path).config()
    names = [name for name in open_source(make_tiny(tmp_path / "m")).names() if "layers.1.mlp.up" not in name]
    with pytest.raises(CorruptFile, match=r"layers\.1\.mlp\.up_proj"):
        layout.plan(names, 3, True, "m")


def test_tensor_without_a_place_is_named(tmp_path: Path) -> None:
    path = make_tiny_gguf(
        tmp_path / "m.gguf", extra_tensors={"blk.0.attn_sinks.weight": np.zeros(4, np.float32)}
    )
    source = open_source(path)
    with pytest.raises(UnsupportedArchitecture, match="attn_sinks"):
        layout.plan(source.names(), 3, True, "m")


def test_mixtures_are_refused(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "m.gguf", extra={"expert_count": 8.0})
    with pytest.raises(UnsupportedArchitecture, match="mixture"):
        open_source(path).config()
    path.write_bytes(path.read_bytes().replace(b"qwen2.expert_count", b"qwen2.export_count"))
    assert open_source(path).config()["num_hidden_layers"] == 3
