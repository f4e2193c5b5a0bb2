"""NF4 and LLM.int8(): values of bitsandbytes' own modules, and rows that do not know their neighbours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inference import bitsandbytes_library
from inference.api import EngineConfig
from inference.bitsandbytes_library import bitsandbytes
from inference.errors import UnsupportedNumerics
from inference.hardware import choose_device
from inference.model.linear import Linear, LlmInt8Linear, Nf4Linear
from inference.weights import forms
from inference.weights.safetensors_file import SafetensorsFile
from inference.weights.store import prepare
from tests.tiny_models import make_tiny

ROOT = Path(__file__).parents[3]

# Outputs and inputs: of the 0.5B; no multiple of a block or of the CPU kernel's rows; a single block.
SHAPES = ((1152, 896), (896, 4864), (50, 160), (96, 33), (7, 50), (32, 64))


def weights(outputs: int, inputs: int) -> torch.Tensor:
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(outputs)) / inputs**0.5


def activations(rows: int, inputs: int) -> torch.Tensor:
    """Every other row has outliers, each in columns of its own."""
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, inputs, generator=generator).clamp_(-4, 4)
    for row in range(0, rows, 2):
        columns = torch.randperm(inputs, generator=generator)[: max(1, inputs // 50)]
        x[row, columns] *= 40.0
    return x


def nf4(weight: torch.Tensor, bias: torch.Tensor | None = None, packed: bool | None = None) -> Nf4Linear:
    form = forms.stored("nf4", weight.numpy())
    assert form["weight"].shape == forms.stored_shape("nf4", tuple(weight.shape))
    return Nf4Linear(torch.from_numpy(form["weight"]), torch.from_numpy(form["nf4_absmax"]), bias, packed)


def llm_int8(weight: torch.Tensor, bias: torch.Tensor | None = None, blocks: bool = False) -> LlmInt8Linear:
    form = forms.stored("llm-int8", weight.numpy())
    absmax = torch.from_numpy(form["llm_int8_absmax"])
    return LlmInt8Linear(torch.from_numpy(form["weight"]), absmax, bias, blocks)


def unpacked(form: dict[str, np.ndarray], inputs: int) -> torch.Tensor:
    """What NF4's definition says the stored tensors mean."""
    code = bitsandbytes().functional.get_4bit_type("nf4", device="cpu")
    codes = torch.from_numpy(form["weight"]).long()
    values = code[torch.stack((codes >> 4, codes & 15), dim=2).flatten(1)]
    return (values * torch.from_numpy(form["nf4_absmax"]).repeat_interleave(forms.NF4_BLOCK, 1))[:, :inputs]


def difference(y: torch.Tensor, right: torch.Tensor) -> float:
    return float((y - right).norm() / right.norm())


@pytest.mark.parametrize("shape", SHAPES)
def test_nf4_weights_are_the_nearest_codes(shape: tuple[int, int]) -> None:
    weight = weights(*shape)
    found = unpacked(forms.stored("nf4", weight.numpy()), shape[1])
    code = bitsandbytes().functional.get_4bit_type("nf4", device="cpu")
    for row in range(0, shape[0], 17):
        for start in range(0, shape[1], forms.NF4_BLOCK):
            block = weight[row, start : start + forms.NF4_BLOCK]
            nearest = (block[:, None] / block.abs().max() - code).abs().min(dim=1).values
            chosen = (block - found[row, start : start + forms.NF4_BLOCK]).abs() / block.abs().max()
            torch.testing.assert_close(chosen, nearest, atol=1e-6, rtol=0)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_nf4_products(shape: tuple[int, int], packed: bool) -> None:
    if packed and not bitsandbytes().functional.has_avx512bf16():
        pytest.skip("this processor lacks the instructions of bitsandbytes' CPU kernel")
    weight, bias, x = weights(*shape), torch.randn(shape[0]), activations(37, shape[1])
    linear = nf4(weight, bias, packed)
    assert linear.packed == (packed and shape[0] % 32 == 0)
    assert bool(linear.private_bytes) == linear.packed
    y = linear(x)
    assert y.dtype is torch.float32 and y.shape == (37, shape[0])
    right = x @ unpacked(forms.stored("nf4", weight.numpy()), shape[1]).t() + bias
    # bf16 has 8 bits; its sums are float32.
    assert difference(y, right) < (0.01 if linear.packed else 1e-5)
    assert 0.02 < difference(y - bias, x @ weight.t()) < 0.2  # 4 bits are not nothing


def test_nf4_away_from_the_cpu_uses_the_module_of_bitsandbytes() -> None:
    # No GPU here: a device of shapes alone has all decisions of one.
    weight, absmax = torch.empty(96, 96, dtype=torch.uint8, device="meta"), torch.empty(96, 3, device="meta")
    linear = Nf4Linear(weight, absmax, torch.empty(96, device="meta"))
    assert not linear.packed and linear.private_bytes == 0
    y = linear(torch.empty(5, 160, device="meta"))
    assert (y.shape, y.dtype, y.device.type) == ((5, 96), torch.float32, "meta")
    # The same call with values.
    x, right = activations(5, 160), nf4(weights(96, 160), packed=False)
    by_module = nf4(weights(96, 160), packed=False)
    by_module._unpacks = False
    by_module._module.compute_dtype = torch.bfloat16
    assert difference(by_module(x), right(x)) < 0.01


def test_nf4_takes_the_bytes_that_were_promised() -> None:
    linear = nf4(weights(1152, 896), packed=False)
    assert linear.weight_bytes == forms.stored_bytes("nf4", (1152, 896)) == 1152 * 896 * 9 // 16
    assert (linear.out_features, linear.in_features) == (1152, 896)


@pytest.mark.parametrize("shape", SHAPES)
def test_llm_int8_of_one_row_is_bitsandbytes_own(shape: tuple[int, int]) -> None:
    weight, x = weights(*shape), activations(24, shape[1])
    library = bitsandbytes()
    module = library.nn.Linear8bitLt(shape[1], shape[0], bias=False, has_fp16_weights=False, threshold=6.0)
    module.weight = library.nn.Int8Params(weight.half(), requires_grad=False, has_fp16_weights=False)
    module = module.to("cpu").eval()
    with torch.inference_mode():
        y = llm_int8(weight)(x)
        right = torch.cat([module(x[row : row + 1].half()) for row in range(len(x))]).float()
        together = module(x.half()).float()
    # It adds up outliers in fp16.
    assert difference(y, right) < 2e-3
    assert difference(y, x @ weight.t()) < 0.02
    # The reason why its module is not used: other bits in company.
    assert not torch.equal(together, right)


def test_outliers_are_what_eight_bits_would_lose() -> None:
    weight, x = weights(896, 896), activations(1, 896)
    x[0, 5] = 3000.0
    form = forms.stored("llm-int8", weight.numpy())
    rounded = torch.from_numpy(form["weight"] * form["llm_int8_absmax"][:, None] / np.float32(127))
    right = x @ rounded.t()
    scale = x.abs().max() / 127
    plain = (x / scale).round() * scale @ rounded.t()
    assert difference(llm_int8(weight)(x), right) < 0.1 * difference(plain, right)
    beyond = x.clone()
    beyond[0, 5] = 1e6  # no number in fp16
    assert torch.isfinite(llm_int8(weight)(beyond)).all()


@pytest.mark.parametrize("blocks", [True, False])
def test_the_integer_product_is_exact(blocks: bool) -> None:
    # All of one sign and full range: in float32 such sums are not exact beyond 1024 terms.
    weight = torch.randint(120, 128, (64, 4864), dtype=torch.int8)
    x = torch.rand(5, 4864) * 0.2 + 5.7
    linear = LlmInt8Linear(weight, torch.full((64,), 127.0), None, blocks)
    half = x.half()
    absmax = half.abs().amax(dim=1, keepdim=True).float()
    q = (half * (127.0 / absmax)).round().long()
    right = (q @ weight.long().t()).float() * (absmax / 127.0)
    assert torch.equal(linear(x), right)


KINDS: dict[str, Any] = {
    "nf4": nf4,
    "nf4-unpacked": lambda weight, bias: nf4(weight, bias, packed=False),
    "llm-int8": llm_int8,
    "llm-int8-blocks": lambda weight, bias: llm_int8(weight, bias, blocks=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_does_not_know_its_neighbours(kind: str, shape: tuple[int, int]) -> None:
    linear: Linear = KINDS[kind](weights(*shape), torch.randn(shape[0]))
    x = activations(131, shape[1])
    whole = linear(x)
    for start, stop in ((0, 1), (1, 2), (2, 4), (3, 8), (5, 22), (7, 39), (64, 131), (130, 131), (1, 130)):
        assert torch.equal(linear(x[start:stop]), whole[start:stop]), (start, stop)
    assert torch.equal(linear(x.t().contiguous().t()), whole)  # also where it lies column by column
    shuffled = torch.randperm(131, generator=torch.Generator().manual_seed(1))
    assert torch.equal(linear(x[shuffled]), whole[shuffled])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_weights_of_zeros(kind: str) -> None:
    weight = weights(64, 128)
    weight[3] = 0
    x = activations(4, 128)
    x[2] = 0
    y = KINDS[kind](weight, None)(x)
    assert torch.isfinite(y).all() and not y[:, 3].any() and not y[2].any()
    assert y[0].any()


@pytest.mark.parametrize("numerics", ["nf4", "llm-int8"])
def test_converted_files_hold_the_form_of_the_weights(tmp_path: Path, tiny_home: Path, numerics: Any) -> None:
    model = str(make_tiny(tmp_path / "m", seed=2))
    exact = SafetensorsFile(prepare(model, "fp32").weights)
    file = SafetensorsFile(prepare(model, numerics).weights)
    assert "head.weight" not in file.names and file.dtype("embed.weight") == "BF16"  # tied, as in bf16
    for name in ("layers.0.attn.qkv", "layers.2.mlp.gate_up", "layers.1.mlp.down"):
        for part, values in forms.stored(numerics, np.array(exact.view(f"{name}.weight"))).items():
            np.testing.assert_array_equal(file.view(f"{name}.{part}"), values)
    np.testing.assert_array_equal(file.view("layers.1.attn.qkv.bias"), exact.view("layers.1.attn.qkv.bias"))


def test_long_weights_are_quantised_in_pieces_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = weights(100, 160).numpy()
    for numerics in ("nf4", "llm-int8"):
        whole = forms.stored(numerics, weight)  # type: ignore[arg-type]
        monkeypatch.setattr(forms, "BLOCK_VALUES", 1000)
        pieces = forms.stored(numerics, weight)  # type: ignore[arg-type]
        monkeypatch.undo()
        for name in whole:
            np.testing.assert_array_equal(whole[name], pieces[name])


def test_weights_beyond_fp16_are_refused() -> None:
    with pytest.raises(UnsupportedNumerics, match="fp16"):
        forms.stored("llm-int8", np.full((2, 64), 1e5, np.float32))


@pytest.mark.parametrize("numerics", ["nf4", "llm-int8"])
def test_without_bitsandbytes_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, numerics: Any
) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    bitsandbytes_library.bitsandbytes.cache_clear()
    for options in ({"numerics": numerics}, {"mixed": f"head={numerics}"}):
        with pytest.raises(UnsupportedNumerics, match="bitsandbytes") as caught:
            choose_device(EngineConfig(**options))
        assert "pip install 'bitsandbytes" in caught.value.next_step
    choose_device(EngineConfig(numerics="int8"))


_IMPORT = """
import sys, types

def get_kernel(*arguments, **options):
    raise SystemExit("asked the hub")

kernels = sys.modules["kernels"] = types.ModuleType("kernels")
kernels.get_kernel = get_kernel
import inference.hardware, inference.model.loader, inference.weights.store
assert "bitsandbytes" not in sys.modules, "imported before it is needed"
from inference.bitsandbytes_library import bitsandbytes
assert bitsandbytes().__name__ == "bitsandbytes"
assert sys.modules["kernels"] is kernels
"""


def test_the_import_is_late_quiet_and_offline() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORT], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
