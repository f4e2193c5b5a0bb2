"""fp32 logits equal transformers' on tiny random models of every supported architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig
from inference.errors import UnsupportedArchitecture
from inference.model.config import ModelConfig
from inference.runtime import load_runtime
from tests.tiny_models import make_tiny

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
LINEAR = {"rope_type": "linear", "factor": 2.0}

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("qwen2", {}),
    ("qwen2", {"tie_word_embeddings": False}),
    ("qwen2", {"rope_scaling": YARN}),
    ("qwen3", {}),
    ("llama", {}),
    ("llama", {"rope_scaling": LLAMA3, "attention_bias": True}),
    ("llama", {"rope_scaling": LINEAR, "num_key_value_heads": 4}),
    ("mistral", {}),
    ("granite", {}),
    ("smollm3", {}),
]


@pytest.mark.parametrize(("architecture", "overrides"), VARIANTS)
def test_logits_equal_transformers(
    architecture: str, overrides: dict[str, Any], tmp_path: Path, tiny_home: Path
) -> None:
    from transformers import AutoModelForCausalLM

    directory = make_tiny(tmp_path / "model", architecture, **overrides)
    reference = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    runtime = load_runtime(
        EngineConfig(model=str(directory), numerics="fp32", context=600), lambda message, fraction: None
    )
    tokens = torch.randint(0, 500, (500,), generator=torch.Generator().manual_seed(1)).tolist()
    with torch.inference_mode():
        expected = reference(torch.tensor([tokens])).logits[0]
        slot = runtime.decoder.new_slot(600)
        parts = [runtime.decoder.forward(tokens[i : i + 128], slot) for i in range(0, 500, 128)]
    logits = torch.cat([part for part in parts if part is not None])
    assert (logits - expected).abs().max() < 1e-3
    assert expected.std() > 0.1, "a model whose logits are all alike proves nothing"


def test_other_architectures_are_refused() -> None:
    with pytest.raises(UnsupportedArchitecture, match="gpt_bigcode"):
        ModelConfig.from_hf({"model_type": "gpt_bigcode"})


def test_sliding_window_bounds_the_context(tmp_path: Path, tiny_home: Path) -> None:
    directory = make_tiny(tmp_path / "model", "mistral", sliding_window=256)
    runtime = load_runtime(EngineConfig(model=str(directory), context=600), lambda message, fraction: None)
    assert runtime.context == 256
