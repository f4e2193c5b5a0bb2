"""Rows get the same bits alone and in company, for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F

from inference.model.elementwise import VECTOR, padded_rows, rms_norm, silu_times
from inference.model.linear.int8 import quantize_rows


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3, 5], indirect=True)
@pytest.mark.parametrize("inner", [64, 100, 160, 896, 4864])
def test_rows_do_not_depend_on_their_neighbours(threads: int, inner: int) -> None:
    generator = torch.Generator().manual_seed(inner)
    gate_up = torch.randn(300, 2 * inner, generator=generator)
    x = gate_up[:, :inner].contiguous()
    weight = torch.rand(inner, generator=generator)
    active, normed, quantised = silu_times(gate_up), rms_norm(x, weight, 1e-6), quantize_rows(x)
    for start, stop in ((0, 1), (7, 8), (1, 18), (5, 28), (13, 114), (0, 239), (3, 300)):
        part = slice(start, stop)
        assert torch.equal(silu_times(gate_up[part].clone()), active[part])
        assert torch.equal(rms_norm(x[part].clone(), weight, 1e-6), normed[part])
        q, scale = quantize_rows(x[part].clone())
        assert torch.equal(q, quantised[0][part])
        assert torch.equal(scale, quantised[1][part])


def test_activation_is_silu_times_up() -> None:
    gate_up = torch.randn(7, 64)
    gate, up = gate_up.double().chunk(2, -1)
    assert torch.allclose(silu_times(gate_up).double(), F.silu(gate) * up, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 13])
def test_no_thread_starts_inside_a_vector(count: int) -> None:
    for inner in (100, 160, 4864):
        for rows in (*range(1, 60), 511):
            padded = padded_rows(rows, inner, count)
            assert rows <= padded < rows + 4 * count
            used = min(count, -(-padded * inner // 32768))
            share = -(-padded * inner // used)
            aligned = share % inner == 0 or (inner % VECTOR == 0 and share % VECTOR == 0)
            assert used == 1 or aligned
