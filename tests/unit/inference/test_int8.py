"""Every int8 kernel that the probe may choose computes the exact product."""

from __future__ import annotations

import pytest
import torch

from inference.hardware import choose_int8_kernel, exact_product
from inference.model.linear.int8 import Int8Kernel, Int8Linear, quantize_rows


def test_quantisation_error_is_at_most_half_a_step() -> None:
    x = torch.randn(9, 128) * torch.logspace(-3, 3, 9)[:, None]
    x[4] = 0
    q, scale = quantize_rows(x)
    assert q.dtype is torch.uint8
    assert q.min() >= 1
    assert torch.all(((q.float() - 128) * scale - x).abs() <= 0.5001 * scale)


@pytest.mark.parametrize("kernel", [Int8Kernel.ONEDNN_SPLIT, Int8Kernel.FLOAT, None])
@pytest.mark.parametrize("size", [(96, 64), (344, 128), (896, 4864)])
def test_kernels_are_exact(kernel: Int8Kernel | None, size: tuple[int, int]) -> None:
    """ONEDNN_SPLIT and FLOAT hold anywhere; None stands for this machine's choice."""
    chosen = kernel or choose_int8_kernel()[0]
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


def test_the_probe_refuses_wrong_values(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Int8Linear._onednn

    def saturating(self: Int8Linear, q: torch.Tensor, zero_point: int, scale: torch.Tensor) -> torch.Tensor:
        return right(self, q, zero_point, scale).clamp(-100.0, 100.0)

    monkeypatch.setattr(Int8Linear, "_onednn", saturating)
    kernel, reports = choose_int8_kernel()
    assert kernel is Int8Kernel.FLOAT
    assert [report.exact for report in reports] == [False, False, True]
