"""What a choice of kernels holds for."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from pathlib import Path

import torch

from inference.diagnosis.machine import processor
from inference.model.fused.compiler import features

_INFERENCE = Path(__file__).resolve().parents[1]
# Everything that computes or chooses an int8 product.
_SOURCES = ("model/linear/*.py", "model/fused/*.c", "model/fused/*.py", "probe/*.py")


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def identity(available: tuple[str, ...]) -> dict[str, str]:
    """Machine, torch and our own code; any difference makes a choice worthless.

    Args:
        available: names of the candidates that are there at all: a compiler may come or go.
    """
    return {
        "processor": processor(),
        "architecture": platform.machine(),
        "features": hashlib.sha256(features().encode()).hexdigest()[:16],
        "cores": str(available_cores()),
        "threads": str(torch.get_num_threads()),
        "torch": str(torch.__version__),
        "onednn_cap": os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
        "candidates": " ".join(available),
        "sources": _sources(),
    }


@lru_cache(maxsize=1)
def _sources() -> str:
    digest = hashlib.sha256()
    for pattern in _SOURCES:
        for file in sorted(_INFERENCE.glob(pattern)):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
