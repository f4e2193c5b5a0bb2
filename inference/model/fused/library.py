"""The compiled functions, callable on tensors' addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

_P, _I, _J, _F = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float

# In the order of the C parameters; see the C files.
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "quantize": (_P, _I, _I, _P, _P),
    "add_norm": (_P, _P, _P, _I, _I, _P, _F, _P, _P),
    "silu": (_P, _P, _I, _I, _P, _P),
    "rotate": (_P, _P, _P, _I, _I, _I, _I, _P, _P, _P, _P, _P, _P, _J, _J, _P, _P),
    "attention": (_P, _P, _P, _I, _I, _I, _I, _J, _J, _F, _I, _P, _J, _P, _P, _P, _P, _P),
    "pack": (_P, _I, _I, _P, _P),
    "product": (_P, _I, _I, _I, _P, _P, _P, _P),
    "linear": (_P, _P, _I, _P, _P, _P, _I),
    "layers": (_P, _P, _I),
}


class LinearStruct(ctypes.Structure):
    """``struct linear`` of forward.c."""

    _fields_ = (
        ("weight", _P),
        ("offset", _P),
        ("scale", _P),
        ("bias", _P),
        ("inputs", ctypes.c_int32),
        ("outputs", ctypes.c_int32),
    )


class LayerStruct(ctypes.Structure):
    """``struct layer`` of forward.c."""

    _fields_ = (
        ("attention_norm", _P),
        ("mlp_norm", _P),
        ("qkv", LinearStruct),
        ("out", LinearStruct),
        ("gate_up", LinearStruct),
        ("down", LinearStruct),
    )


class ModelStruct(ctypes.Structure):
    """``struct model`` of forward.c."""

    _fields_ = (
        ("layers", ctypes.POINTER(LayerStruct)),
        ("count", ctypes.c_int32),
        ("hidden", ctypes.c_int32),
        ("inner", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("kv_heads", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("eps", _F),
        ("factor", _F),
    )


class BlockStruct(ctypes.Structure):
    """``struct block`` of forward.c."""

    _fields_ = (
        ("x", _P),
        ("rows", _J),
        ("first", _J),
        ("cosine", _P),
        ("sine", _P),
        ("depth", _P),
        ("path", _P),
        ("keys", _P),
        ("values", _P),
        ("key_scales", _P),
        ("value_scales", _P),
        ("capacity", _J),
        ("scale", _P),
        ("y", _P),
        ("query", _P),
        ("mixed", _P),
        ("work", _P),
        ("q", _P),
        ("unit", _J),
        ("work_size", _J),
        ("laps", _P),
    )


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
        self.pack = self._function(library, "pack")
        self.product = self._function(library, "product")
        self.linear = self._function(library, "linear")
        self.layers = self._function(library, "layers")
        self.parallel = bool(library.draftline_parallel())
        self._work = library.draftline_attention_work
        self._work.argtypes, self._work.restype = (_I, _I, _I, _I, _J), _J

    def usable(self, threads: int) -> bool:
        """Whether it can work with so many threads."""
        return self.parallel or threads == 1

    def attention_work(self, heads: int, kv_heads: int, dim: int, block: int, positions: int) -> int:
        """Floats of work space that one thread needs."""
        return int(self._work(heads, kv_heads, dim, block, positions))

    @staticmethod
    def _function(library: ctypes.CDLL, name: str) -> Callable[..., None]:
        function = library[f"draftline_{name}"]
        function.argtypes, function.restype = _SIGNATURES[name], None
        return function
