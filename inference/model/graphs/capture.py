"""Recording a function's launches. The only part that needs a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

WARM_UPS = 3  # libraries choose kernels and make workspaces in the first calls, which must not be recorded


class Capture(Protocol):
    """Turns a function that works on fixed addresses into one call."""

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        """Run the function and record it; calling the result does the same again.

        Raises:
            RuntimeError: it cannot be recorded.
        """


class CudaCapture:
    """CUDA graphs. All share one pool: no result lives in it, and no two run at once.

    Not tested on hardware.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool: Any = None

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        make: Any = torch.cuda.Stream  # has no types
        stream = make(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                function()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream):
            function()
        replay: Callable[[], None] = graph.replay
        return replay
