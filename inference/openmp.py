"""How long OpenMP threads spin at a barrier before they sleep; to be settled before torch is loaded.

GNU's runtime spins 300 000 times by default: several milliseconds, a scheduler's slice. While a thread
spins for another one that has lost its core, its own core looks busy, so the scheduler does not move
the other one there. Spinning for some tenth of a millisecond still covers the gaps between two
parallel regions of a forward pass, and then gives the core away.

The number follows from that reasoning; it has not been measured yet.
"""

from __future__ import annotations

import importlib
import os
import sys

# Turns of a loop with one pause instruction: 40 to 140 cycles each, by processor.
SPINS = "5000"
_OURS = "GOMP_SPINCOUNT"
_USERS = (_OURS, "OMP_WAIT_POLICY")


def import_torch() -> None:
    """Load torch with our limit, unless the user has set one. Does nothing if torch is there already.

    The runtime reads the variable when it is loaded. It is taken back then: programs that we start, other
    systems in a bench among them, must not inherit it.
    """
    if "torch" in sys.modules or any(name in os.environ for name in _USERS):
        importlib.import_module("torch")
        return
    os.environ[_OURS] = SPINS
    try:
        importlib.import_module("torch")
    finally:
        del os.environ[_OURS]
