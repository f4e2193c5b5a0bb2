"""Pages of mapped weights can be dropped, and are read again if somebody asks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from inference.diagnosis.machine import resident_bytes_of
from inference.weights.pages import drop_pages

MB = 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="does nothing elsewhere")
def test_dropped_pages_are_not_resident_and_still_right(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    first, second = torch.randint(-99, 99, (4 * MB,)).char(), torch.randint(-99, 99, (1001,)).char()
    save_file({"first": first, "second": second}, path)
    with safe_open(path, framework="pt") as file:
        mapped, neighbour = file.get_tensor("first"), file.get_tensor("second")
    assert torch.equal(mapped, first) and torch.equal(neighbour, second)
    before = resident_bytes_of(path) or 0
    drop_pages(mapped)
    drop_pages(neighbour)  # smaller than a page: nothing to drop
    after = resident_bytes_of(path) or 0
    assert before >= 4 * MB and before - after >= 3 * MB
    assert torch.equal(mapped, first) and torch.equal(neighbour, second)
