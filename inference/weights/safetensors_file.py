"""Safetensors files without torch: reading that knows bfloat16, and writing tensor by tensor.

Format: 8 bytes length of the header (little endian), a JSON header, then the tensors' bytes
without gaps. https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.errors import CorruptFile

# The data section starts at a multiple of this, and so does every tensor: whole cache lines, and
# enough for any vector load from the mapping.
ALIGNMENT = 64

_READABLE: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}

_WRITTEN = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16", np.dtype("i1"): "I8", np.dtype("u1"): "U8"}

PADDING_PREFIX = "__padding__."


def widen_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """bfloat16 bit patterns -> float32; exact."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def round_to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """float32 -> bfloat16 bit patterns, to nearest, ties to even; values must not be NaN."""
    bits = values.view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


class SafetensorsFile:
    """A mapped safetensors file.

    Raises:
        CorruptFile: from the constructor, if the header is unreadable or bytes are missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        size = path.stat().st_size
        with open(path, "rb") as file:
            if size < 8:
                raise self._corrupt("it is too short")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header_length = int.from_bytes(self._map[:8], "little")
        self._data = 8 + header_length
        if self._data > size:
            raise self._corrupt("its header is cut off")
        try:
            self._tensors: dict[str, Any] = json.loads(self._map[8 : self._data])
            self._tensors.pop("__metadata__", None)
            end = max((entry["data_offsets"][1] for entry in self._tensors.values()), default=0)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._corrupt("its header cannot be read") from error
        if self._data + end > size:
            raise self._corrupt(f"it has {size} bytes where its header promises {self._data + end}")

    def _corrupt(self, reason: str) -> CorruptFile:
        return CorruptFile(
            f"{self.path} is no complete safetensors file: {reason}.",
            "Download the model again, or point to another one.",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tensors, padding left out."""
        return tuple(name for name in self._tensors if not name.startswith(PADDING_PREFIX))

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return tuple(self._tensors[name]["shape"])

    def dtype(self, name: str) -> str:
        """The format's name of a tensor's type, e.g. ``"BF16"``."""
        return str(self._tensors[name]["dtype"])

    def view(self, name: str) -> NDArray[Any]:
        """A read-only view of a tensor's stored values; BF16 as uint16 bit patterns.

        Raises:
            CorruptFile: the type is none of those that weights come in.
        """
        entry = self._tensors[name]
        dtype = _READABLE.get(entry["dtype"])
        if dtype is None:
            raise self._corrupt(f"tensor {name} has the unknown type {entry['dtype']}")
        start, end = entry["data_offsets"]
        shape = self.shape(name)
        if end - start != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
            raise self._corrupt(f"tensor {name} does not have the bytes of its shape")
        flat = np.frombuffer(self._map, dtype, (end - start) // dtype.itemsize, self._data + start)
        view: NDArray[Any] = flat.reshape(shape)
        return view

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Rows ``start:stop`` along the first axis, widened to float32."""
        stored = self.view(name)[start:stop]
        if self.dtype(name) == "BF16":
            return widen_bfloat16(stored)
        return stored.astype(np.float32)


class SafetensorsWriter:
    """Writes tensors as they come, so that never more than one of them is in memory.

    The header belongs to the front but is known only at the end: room for ``tensors`` entries is
    reserved and the rest of it filled with blanks, which the format allows.
    """

    _ENTRY_BYTES = 256

    def __init__(self, path: Path, tensors: int) -> None:
        reserved = 8 + self._ENTRY_BYTES * (tensors + 8)
        self._header_bytes = -(-reserved // ALIGNMENT) * ALIGNMENT - 8
        self._file = open(path, "wb")  # noqa: SIM115 - closed by __exit__
        self._file.seek(8 + self._header_bytes)
        self._position = 0
        self._entries: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> SafetensorsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_header()
        finally:
            self._file.close()

    def add(self, name: str, values: NDArray[Any]) -> None:
        """Append a tensor; uint16 arrays are bfloat16 bit patterns."""
        self.add_blocks(name, values.shape, iter((values,)))

    def add_blocks(self, name: str, shape: Sequence[int], blocks: Iterator[NDArray[Any]]) -> None:
        """Append a tensor that comes in blocks of rows."""
        self._pad()
        start = self._position
        dtype = ""
        for block in blocks:
            found = "BF16" if block.dtype == np.uint16 else _WRITTEN[block.dtype]
            assert dtype in ("", found), f"{name}: {dtype} then {found}"
            dtype = found
            data = np.ascontiguousarray(block)
            self._file.write(data.data)
            self._position += data.nbytes
        entry = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, self._position]}
        assert name not in self._entries, name
        self._entries[name] = entry

    def _pad(self) -> None:
        # The format forbids gaps, so what aligns the next tensor has to be a tensor itself. Only
        # odd sizes need it, e.g. the scales of a vocabulary of 49155.
        missing = -self._position % ALIGNMENT
        if missing:
            start = self._position
            self._file.write(bytes(missing))
            self._position += missing
            self._entries[f"{PADDING_PREFIX}{start}"] = {
                "dtype": "U8",
                "shape": [missing],
                "data_offsets": [start, self._position],
            }

    def _write_header(self) -> None:
        header = json.dumps(self._entries, separators=(",", ":")).encode()
        assert len(header) <= self._header_bytes, "more tensors than announced"
        self._file.flush()
        self._file.seek(0)
        self._file.write(self._header_bytes.to_bytes(8, "little"))
        self._file.write(header.ljust(self._header_bytes))
        self._file.flush()
        os.fsync(self._file.fileno())
