"""The output head over a part of a vocabulary."""

from __future__ import annotations

import pytest
import torch

import inference.model.linear.short_head as short_head
from inference.model.linear import DenseLinear
from inference.model.linear.short_head import ShortHead

SIZE, WIDTH = 64, 8


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(short_head, "FREQUENT", 16)
    return 16


@pytest.mark.parametrize("integer", [False, True])
def test_logits_are_those_of_the_whole_head(few: int, integer: bool) -> None:
    torch.manual_seed(0)
    whole = torch.randn(SIZE, WIDTH)
    weight, scale = whole, None
    if integer:
        weight, scale = torch.randint(-127, 128, (SIZE, WIDTH), dtype=torch.int8), torch.rand(SIZE)
        whole = weight.float() * scale.unsqueeze(1)
    head = ShortHead(weight, scale, (3, 60), lambda rows: DenseLinear(whole[rows]))
    x = torch.randn(2, WIDTH)
    assert head.ids.tolist() == [*range(few), 60]
    torch.testing.assert_close(head(x), x @ whole[head.ids].t())
    head.add([40, 3, 60, 40, 17, SIZE, 10**6])
    assert head.ids.tolist() == [*range(few), 60, 17, 40]
    head.add([41, 17])
    torch.testing.assert_close(head(x), x @ whole[head.ids].t())
    assert head(x).shape == (2, head.out_features)
    head.begin()
    assert head.ids.tolist() == [*range(few), 60]
    assert head(x).shape == (2, head.out_features)


def test_a_long_text_does_not_make_it_long(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_head, "MOST_OTHERS", 5)
    weight = torch.randn(SIZE, WIDTH)
    head = ShortHead(weight, None, (), lambda rows: DenseLinear(weight[rows]))
    head.add(range(SIZE))
    head.add(range(SIZE))
    assert head.out_features == few + 5
