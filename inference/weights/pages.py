"""Giving back memory of mapped weights that will not be read again."""

from __future__ import annotations

import ctypes
import mmap
import sys

import torch

_MADV_DONTNEED = 4  # Linux, asm-generic/mman-common.h


def drop_pages(tensor: torch.Tensor) -> None:
    """Tell the system that a contiguous CPU tensor of a mapped file is not needed any more.

    Its pages leave this process' memory; they stay in the file cache as long as there is room. Reading them
    again would be right, only slower. Does nothing outside Linux.
    """
    if sys.platform != "linux":
        return
    start, page = tensor.data_ptr(), mmap.PAGESIZE
    first = -(-start // page) * page  # other tensors may share the pages at the edges
    length = (start + tensor.numel() * tensor.element_size()) // page * page - first
    if length > 0:
        # Without an effect on failure: it is advice.
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), _MADV_DONTNEED)
