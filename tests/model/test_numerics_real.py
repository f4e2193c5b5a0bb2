"""The real weights: fp32 equals transformers, int8 is as good as fp32 on every instruction set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig
from inference.runtime import load_runtime
from inference.weights import store
from inference.weights.source import open_source, read
from tests import perplexity

pytestmark = pytest.mark.model


@dataclass(frozen=True)
class Reference:
    """transformers in fp32 on the held-out text: the first logits, and the quality of all."""

    tokens: list[int]
    logits: torch.Tensor  # [500, vocab]
    perplexity: float
    argmax: list[int]


@pytest.fixture(scope="module")
def original(real_model: str) -> Path:
    path = store.locate(real_model)
    assert path is not None
    return path


@pytest.fixture(scope="module")
def reference(original: Path, real_model: str) -> Reference:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from inference.tokenizer import Tokenizer

    source = open_source(original)
    config = Qwen2Config(**source.config())
    with torch.device("meta"):
        model = Qwen2ForCausalLM(config)
    state = {name: torch.from_numpy(read(source, name)) for name in source.names()}
    missing, unexpected = model.load_state_dict(state, assign=True, strict=False)
    assert not missing
    assert not unexpected
    # Buffers that follow from the config cannot come from the file.
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=config)
    model.eval()
    prepared = store.prepare(real_model, "int8")
    tokens = Tokenizer(prepared.tokenizer).encode(perplexity.held_out_text())
    nll, argmax, first = 0.0, [], None
    window = perplexity.WINDOW
    with torch.inference_mode():
        for start in range(0, len(tokens) - 1, window):
            block = tokens[start : start + window + 1]
            targets = torch.tensor(block[1:])
            logits = model(torch.tensor([block[: len(targets)]])).logits[0]
            if first is None:
                first = logits[:500].clone()
            chance = torch.log_softmax(logits.double(), -1)
            nll -= chance[torch.arange(len(targets)), targets].sum().item()
            argmax += logits.argmax(-1).tolist()
    assert first is not None
    return Reference(tokens, first, math.exp(nll / len(argmax)), argmax)


@pytest.fixture
def scratch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """For 2.5 GB of float32 weights that nobody needs afterwards."""
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path))
    yield tmp_path
    for file in tmp_path.rglob("*.safetensors"):
        file.unlink()


def test_fp32_logits_equal_transformers(reference: Reference, original: Path, scratch_home: Path) -> None:
    config = EngineConfig(model=str(original), numerics="fp32", context=512)
    runtime = load_runtime(config, lambda message, fraction: None)
    slot = runtime.decoder.new_slot(512)
    with torch.inference_mode():
        logits = runtime.decoder.forward(reference.tokens[:500], slot)
    assert logits is not None
    assert (logits - reference.logits).abs().max() < 1e-3


@pytest.fixture(scope="module")
def int8(real_model: str) -> dict[str, Any]:
    """int8 weights, keys and values in fp32, on the instruction set of this machine."""
    return perplexity.measure(real_model, "int8", perplexity.held_out_text())


def test_int8_is_as_good_as_fp32(reference: Reference, int8: dict[str, Any]) -> None:
    assert int8["tokens"] == len(reference.argmax)
    value = math.exp(int8["nll"] / int8["tokens"])
    agreement = sum(a == b for a, b in zip(int8["argmax"], reference.argmax, strict=True)) / int8["tokens"]
    print(
        f"\nint8 ({int8['kernel']}): perplexity {value:.4f}, fp32 {reference.perplexity:.4f} "
        f"({value / reference.perplexity - 1:+.2%}), argmax agreement {agreement:.2%}"
    )
    assert value < 1.02 * reference.perplexity
    assert agreement > 0.93


@pytest.mark.isa
@pytest.mark.parametrize("isa", ["AVX512_CORE_VNNI", "AVX2_VNNI", "AVX2"])
def test_other_instruction_sets_are_as_good(real_model: str, int8: dict[str, Any], isa: str) -> None:
    """Sums of integers are exact everywhere: on a part of the text the very same tokens are likeliest."""
    environment = {"ONEDNN_MAX_CPU_ISA": isa}
    result = perplexity.measure(real_model, "int8", perplexity.held_out_text(), environment, windows=1)
    assert result["tokens"] == perplexity.WINDOW
    assert result["argmax"] == int8["argmax"][: perplexity.WINDOW]


def test_int8_keys_and_values_are_nearly_as_good(real_model: str, int8: dict[str, Any]) -> None:
    full, small = int8, perplexity.measure(real_model, "int8", perplexity.held_out_text(), kv="int8")
    values = [math.exp(result["nll"] / result["tokens"]) for result in (full, small)]
    agreement = sum(a == b for a, b in zip(small["argmax"], full["argmax"], strict=True)) / full["tokens"]
    print(
        f"\nKV in int8: perplexity {values[1]:.4f}, in fp32 {values[0]:.4f} "
        f"({values[1] / values[0] - 1:+.2%}), argmax agreement {agreement:.2%}"
    )
    assert values[1] < 1.02 * values[0]
    assert agreement > 0.92
