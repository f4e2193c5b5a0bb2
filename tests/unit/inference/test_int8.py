"""Every int8 kernel that the probe may choose computes the exact product."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inference.model.linear.int8 import Int8Kernel, Int8Linear, quantize_rows
from inference.probe.choice import choose_int8_kernel
from inference.probe.values import exact_product


def test_quantisation_error_is_at_most_half_a_step() -> None:
    x = torch.randn(9, 128) * torch.logspace(-3, 3, 9)[:, None]
    x[4] = 0
    q, scale = quantize_rows(x)
    assert q.dtype is torch.uint8
    assert q.min() >= 1
    assert torch.all(((q.float() - 128) * scale - x).abs() <= 0.5001 * scale)


@pytest.mark.parametrize("kernel", [Int8Kernel.ONEDNN_SPLIT, Int8Kernel.FLOAT, None])
@pytest.mark.parametrize("size", [(96, 64), (344, 128), (896, 4864)])
def test_kernels_are_exact(tiny_home: Path, kernel: Int8Kernel | None, size: tuple[int, int]) -> None:
    """ONEDNN_SPLIT and FLOAT hold anywhere; None stands for this machine's choice."""
    chosen = kernel or choose_int8_kernel().kernel
    generator = torch.Generator().manual_seed(3)
    weight = torch.randint(-127, 128, size, dtype=torch.int8, generator=generator)
    weight[::3] = weight[::3].abs()  # sums of one sign saturate 16-bit accumulators
    scale = torch.rand(size[0], generator=generator) * 0.01
    x = torch.randn(33, size[1], generator=generator).abs()
    bias = torch.randn(size[0], generator=generator)
    expected = exact_product(x, weight, scale) + bias
    linear = Int8Linear(weight, scale, bias, chosen)
    for rows in (1, 2, 7, 16, 33):
        assert torch.equal(linear(x[:rows]), expected[:rows])


def test_the_probe_refuses_wrong_values(tiny_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Int8Linear._onednn

    def saturating(self: Int8Linear, q: torch.Tensor, zero_point: int, scale: torch.Tensor) -> torch.Tensor:
        return right(self, q, zero_point, scale).clamp(-100.0, 100.0)

    monkeypatch.setattr(Int8Linear, "_onednn", saturating)
    choice = choose_int8_kernel()
    assert choice.kernel is Int8Kernel.FLOAT
    exact = {report.name: report.exact for report in choice.reports}
    assert not exact["onednn-u8"] and not exact["onednn-u8-split"] and exact["float-blocks"]
