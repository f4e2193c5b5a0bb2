"""The compiled functions, callable on tensors' addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

_P, _I, _J, _F = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float

# In the order of the C parameters; see rows.c and attention.c.
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "quantize": (_P, _I, _I, _P, _P),
    "add_norm": (_P, _P, _P, _I, _I, _P, _F, _P, _P),
    "silu": (_P, _P, _I, _I, _P, _P),
    "rotate": (_P, _P, _P, _I, _I, _I, _I, _P, _P, _P, _P, _P, _J, _J, _P, _P),
    "attention": (_P, _P, _P, _I, _I, _I, _I, _J, _J, _F, _I, _I, _P, _J, _P, _P, _P),
}


class Library:
    """One loaded library; ``parallel`` if it shares torch's threads.

    Addresses are ``data_ptr()`` of contiguous CPU tensors; they are not checked.

    Raises:
        OSError: the file cannot be loaded, e.g. its thread library is missing.
    """

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        self.quantize = self._function(library, "quantize")
        self.add_norm = self._function(library, "add_norm")
        self.silu = self._function(library, "silu")
        self.rotate = self._function(library, "rotate")
        self.attention = self._function(library, "attention")
        self.parallel = bool(library.draftline_parallel())
        self._work = library.draftline_attention_work
        self._work.argtypes, self._work.restype = (_I, _I, _I, _I, _J), _J

    def attention_work(self, heads: int, kv_heads: int, dim: int, block: int, positions: int) -> int:
        """Floats of work space that one thread needs."""
        return int(self._work(heads, kv_heads, dim, block, positions))

    @staticmethod
    def _function(library: ctypes.CDLL, name: str) -> Callable[..., None]:
        function = library[f"draftline_{name}"]
        function.argtypes, function.restype = _SIGNATURES[name], None
        return function
