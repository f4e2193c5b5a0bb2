"""What differs between CPU, CUDA and MPS beside speed: types that work, and when work is done.

CUDA and MPS have not been tested on hardware; the tests check the dispatch.
"""

from __future__ import annotations

import torch


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given.

    CUDA and MPS return before that: a time taken without waiting is the time of giving orders.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def computes(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether products of this type run there.

    bfloat16 came to MPS with macOS 14, and what works differs between versions of torch: trying is surest.
    """
    if device.type == "cpu":
        return True
    try:
        ones = torch.ones(2, 2, dtype=dtype, device=device)
        return float((ones @ ones).sum().item()) == 8.0
    except (RuntimeError, TypeError, AssertionError):
        return False
