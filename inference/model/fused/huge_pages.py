"""Memory for packed weights in pages of 2 MiB where the system has them.

A forward reads all weights once, in order. With pages of 4 KiB it also reads an entry of the page table for
each, and the processor's own prefetching ends at every page: a tenth of the bandwidth.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap

import torch

_ALIGN = 1 << 21
_CHUNK = 64 << 20


class Arena:
    """Hands out parts of large mappings; they live as long as any tensor that was handed out.

    Args:
        chunk: bytes of a mapping at least.
    """

    def __init__(self, chunk: int = _CHUNK) -> None:
        self._chunk = chunk
        self._memory = torch.empty(0, dtype=torch.int8)
        self._used = 0

    def allocate(self, size: int) -> torch.Tensor:
        """Uninitialised int8 [size], aligned to 64 bytes.

        Raises:
            MemoryError
        """
        start = -(-self._used // 64) * 64
        if start + size > self._memory.numel():
            self._memory = _mapped(max(size, self._chunk))
            start = 0
        self._used = start + size
        return self._memory[start : start + size]


def _mapped(size: int) -> torch.Tensor:
    rounded = -(-size // _ALIGN) * _ALIGN
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            # Python's default is shared memory, for which most systems have no large pages.
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            mapping = mmap.mmap(-1, rounded + _ALIGN, flags=flags)
        else:
            mapping = mmap.mmap(-1, rounded + _ALIGN)
    except (OSError, ValueError) as error:
        raise MemoryError(str(error)) from error
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    skip = -address % _ALIGN
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            mapping.madvise(mmap.MADV_HUGEPAGE, skip, rounded)
    return torch.frombuffer(mapping, dtype=torch.int8, count=rounded, offset=skip)
