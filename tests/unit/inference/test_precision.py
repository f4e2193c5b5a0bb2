"""Numerics by the names of layers: what is read, what it means, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import hardware
from inference.api import EngineConfig
from inference.errors import UnsupportedNumerics
from inference.hardware import choose_device
from inference.model.linear import CompiledLinear, DenseLinear, Int8Linear, LlmInt8Linear, Nf4Linear
from inference.precision import Precision, precision_of
from inference.runtime import Runtime, load_runtime
from inference.weights.layout import linear_names
from inference.weights.store import prepare
from tests.tiny_models import make_tiny


def test_the_first_match_wins_and_others_keep_the_base() -> None:
    precision = Precision.parse("int8", "layers.0.attn.*=fp32, layers.0.*=bf16 ,head=nf4")
    assert precision.of("layers.0.attn.qkv") == "fp32"
    assert precision.of("layers.0.mlp.down") == "bf16"
    assert precision.of("layers.10.mlp.down") == "int8"
    assert precision.of("head") == "nf4"
    assert precision.used == {"int8", "fp32", "bf16", "nf4"}
    assert precision.mixed == "layers.0.attn.*=fp32,layers.0.*=bf16,head=nf4"
    assert str(precision) == f"int8+{precision.mixed}" and str(Precision("int8")) == "int8"
    assert Precision.parse("int8", " ").rules == ()


def test_the_head_of_bitsandbytes_numerics_is_not_quantised() -> None:
    assert Precision("nf4").of("head") == Precision("llm-int8").of("head") == "bf16"
    assert Precision("int8").of("head") == "int8"
    assert Precision.parse("nf4", "head=nf4").of("head") == "nf4"


@pytest.mark.parametrize("mixed", ["head", "=bf16", "head=", "head=int3", "head:bf16", "a=b=c"])
def test_words_that_cannot_be_read(mixed: str) -> None:
    with pytest.raises(ValueError, match=r"PATTERN=NUMERICS.*nf4"):
        Precision.parse("int8", mixed)
    with pytest.raises(UnsupportedNumerics, match="--mixed"):
        precision_of(EngineConfig(mixed=mixed))


@pytest.mark.parametrize(
    ("mixed", "reason"),
    [
        ("layers.3.*=bf16", "no linear layer has that name"),
        ("layers.*.norm=bf16", "no linear layer has that name"),
        ("layers.*=bf16,layers.1.mlp.down=fp32", "earlier patterns"),
    ],
)
def test_a_pattern_without_effect_is_an_error_that_names_the_layers(
    tmp_path: Path, tiny_home: Path, mixed: str, reason: str
) -> None:
    model = make_tiny(tmp_path / "m")  # of three layers
    with pytest.raises(UnsupportedNumerics, match=reason) as caught:
        prepare(str(model), "int8", mixed=mixed)
    assert "layers.0 to layers.2" in caught.value.next_step and "mlp.gate_up" in caught.value.next_step
    prepare(str(model), "int8", mixed="layers.2.mlp.down=fp32,*=bf16")


def runtime(model: Path, **options: Any) -> Runtime:
    return load_runtime(
        EngineConfig(model=str(model), context=256, **options), lambda message, fraction: None
    )


def kinds(loaded: Runtime) -> dict[str, str]:
    weights = loaded.decoder.weights
    linears = [m for layer in weights.layers for m in (layer.qkv, layer.out, layer.gate_up, layer.down)]
    names: dict[type, str] = {
        CompiledLinear: "int8",
        Int8Linear: "int8",
        Nf4Linear: "nf4",
        LlmInt8Linear: "llm-int8",
    }
    found = {}
    for name, linear in zip(linear_names(len(weights.layers)), [*linears, weights.head], strict=True):
        if isinstance(linear, DenseLinear):
            found[name] = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.float16: "fp16"}[
                linear.weight.dtype
            ]
        else:
            found[name] = names[type(linear)]
    return found


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("base", ["int8", "nf4", "llm-int8", "bf16", "fp32"])
def test_every_layer_is_loaded_as_asked(tmp_path: Path, tiny_home: Path, base: Any, tied: bool) -> None:
    model = make_tiny(tmp_path / "m", tie_word_embeddings=tied)
    for mixed in (
        "",
        "layers.0.*=bf16,layers.2.mlp.down=nf4,layers.1.attn.*=llm-int8,layers.1.*=int8",
        "head=fp32",
        "head=int8",
        "head=nf4,layers.1.*=fp32",
        "head=llm-int8",
    ):
        loaded = runtime(model, numerics=base, mixed=mixed)
        precision = Precision.parse(base, mixed)
        assert kinds(loaded) == {name: precision.of(name) for name in linear_names(3)}
        assert loaded.hardware.bit_exact
        assert loaded.decoder.weights.embed.dtype == {"int8": torch.float16, "fp32": torch.float32}.get(
            base, torch.bfloat16
        )


def test_int8_layers_under_another_head_keep_the_compiled_steps(tmp_path: Path, tiny_home: Path) -> None:
    model = make_tiny(tmp_path / "m", head_dim=64)
    plain, head = runtime(model), runtime(model, mixed="head=fp32")
    assert head.decoder.fused == plain.decoder.fused
    assert not runtime(model, mixed="layers.1.attn.out=bf16").decoder.fused


def test_a_mix_has_files_of_its_own(tmp_path: Path, tiny_home: Path) -> None:
    model = str(make_tiny(tmp_path / "m", seed=4))
    plain = prepare(model, "int8")
    mixed = prepare(model, "int8", mixed="head=bf16")
    other = prepare(model, "int8", mixed="head=fp32")
    assert len({plain.path, mixed.path, other.path}) == 3
    for prepared, words in ((plain, ""), (mixed, "head=bf16"), (other, "head=fp32")):
        again = prepare(model, "int8", mixed=words)
        assert again.path == prepared.path and not again.converted
        manifest = json.loads((again.path / "manifest.json").read_text())
        assert (manifest["numerics"], manifest["mixed"]) == ("int8", words)
    assert not prepare(model, "int8", mixed=" head = bf16 ").converted


@pytest.mark.parametrize("options", [{"numerics": "nf4"}, {"mixed": "layers.0.*=llm-int8"}])
def test_bits_are_not_promised_where_rows_do_not_agree(
    tmp_path: Path, tiny_home: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(hardware, "rows_agree", lambda linear, inputs: False)
    found = runtime(make_tiny(tmp_path / "m"), **options).hardware
    assert not found.bit_exact and any("not promised" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numerics": "int8"}, "int8 runs on the CPU only"),
        ({"numerics": "bf16", "mixed": "head=int8"}, "int8 runs on the CPU only"),
        ({"numerics": "nf4"}, "cpu and cuda only"),
        ({"numerics": "bf16", "mixed": "layers.0.*=llm-int8"}, "cpu and cuda only"),
    ],
)
def test_what_a_device_cannot_run(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(UnsupportedNumerics, match=message):
        choose_device(EngineConfig(device="mps", **options))
