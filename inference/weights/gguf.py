"""Reading GGUF files fast.

The format (versions 2 and 3, little endian): header, metadata, tensor descriptions, aligned data.
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

The gguf package's own reader makes an array per string and takes 7 s for a vocabulary of 152k
tokens; here strings are cut out of the mapping in one loop. What blocks of quantised values mean
is left to that package.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from inference.errors import CorruptFile, UnsupportedArchitecture

_MAGIC = b"GGUF"
_DEFAULT_ALIGNMENT = 32

_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_U32, _U64 = _SCALARS[4], _SCALARS[10]

# Values dequantised at a time: the intermediate arrays of a block stay in the second-level cache,
# which is two to three times as fast as blocks of a million.
_DEQUANTISE_VALUES = 2**16


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies: ``shape`` in numpy's order (rows first), ``offset`` from the file's start."""

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    size: int


class GgufFile:
    """A mapped GGUF file.

    Attributes:
        metadata: every key; arrays of numbers are numpy arrays, arrays of strings lists of str.
        tensors: by name, in file order.

    Raises:
        CorruptFile: from the constructor: no GGUF file, an unknown version, or bytes are missing.
        UnsupportedArchitecture: a tensor has a type this version of Draftline cannot read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "rb") as file:
            start = file.read(8)
            if start[:4] != _MAGIC:
                raise CorruptFile(
                    f"{path} is no GGUF file (it does not begin with GGUF).",
                    "Download it again, or point to another file.",
                )
            version = int.from_bytes(start[4:], "little")
            if version not in (2, 3):
                raise CorruptFile(
                    f"{path} has GGUF version {version}; versions 2 and 3 (little endian) can be read.",
                    "Use a newer conversion of this model.",
                )
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.metadata: dict[str, Any] = {}
        self.tensors: dict[str, GgufTensor] = {}
        self._position = 8
        try:
            self._parse()
        except (
            struct.error,
            ValueError,
            TypeError,
            IndexError,
            ArithmeticError,
            MemoryError,
            RecursionError,
        ) as error:
            raise self._truncated("its header is cut off or damaged") from error

    def _truncated(self, reason: str) -> CorruptFile:
        return CorruptFile(f"{self.path} is damaged: {reason}.", "Delete it and fetch the model again.")

    def _parse(self) -> None:
        tensor_count = self._scalar(_U64)
        field_count = self._scalar(_U64)
        for _ in range(field_count):
            key = self._string()
            self.metadata[key] = self._value(self._scalar(_U32))
        found = []
        for _ in range(tensor_count):
            name = self._string()
            dimensions = self._scalar(_U32)
            shape = tuple(self._scalar(_U64) for _ in range(dimensions))[::-1]
            found.append((name, shape, self._scalar(_U32), self._scalar(_U64)))
        alignment = int(self.metadata.get("general.alignment", _DEFAULT_ALIGNMENT))
        data = -(-self._position // alignment) * alignment
        for name, shape, kind_number, offset in found:
            self.tensors[name] = self._tensor(name, shape, kind_number, data + offset)

    def _tensor(self, name: str, shape: tuple[int, ...], kind_number: int, offset: int) -> GgufTensor:
        try:
            kind = GGMLQuantizationType(kind_number)
            block_values, block_bytes = GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError) as error:
            raise UnsupportedArchitecture(
                f"{self.path} stores {name} in the unknown type number {kind_number}.",
                "Use a file with one of the common types, e.g. Q4_K_M or Q8_0.",
            ) from error
        values = 1
        for length in shape:
            values *= length
        if not values or not shape or shape[-1] % block_values:
            raise self._truncated(f"tensor {name} has a shape its type cannot have")
        size = values // block_values * block_bytes
        if offset + size > len(self._map):
            raise self._truncated(
                f"it has {len(self._map)} bytes, but tensor {name} ends at {offset + size} "
                "(an incomplete download?)"
            )
        return GgufTensor(name, shape, kind, offset, size)

    def _scalar(self, form: struct.Struct) -> Any:
        (value,) = form.unpack_from(self._map, self._position)
        self._position += form.size
        return value

    def _string(self) -> str:
        length = self._scalar(_U64)
        end = self._position + length
        if end > len(self._map):
            raise ValueError("string beyond the end")
        text = self._map[self._position : end].decode("utf-8", errors="replace")
        self._position = end
        return text

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            element, length = self._scalar(_U32), self._scalar(_U64)
            if element == _STRING:
                return self._strings(length)
            if element == _ARRAY:
                return [self._value(_ARRAY) for _ in range(length)]
            form = _SCALARS.get(element)
            if form is None:
                raise ValueError(f"unknown element type {element}")
            dtype = np.dtype("?" if element == _BOOL else form.format)
            numbers = np.frombuffer(self._map, dtype, length, self._position).copy()
            self._position += length * form.size
            return numbers
        form = _SCALARS.get(kind)
        if form is None:
            raise ValueError(f"unknown value type {kind}")
        return self._scalar(form)

    def _strings(self, count: int) -> list[str]:
        # The hot loop: 300k rounds for a vocabulary with its merges. Local names only.
        buffer, position, end = self._map, self._position, len(self._map)
        if count * 8 > end - position:
            raise ValueError("more strings than bytes")
        unpack = _U64.unpack_from
        strings: list[str] = []
        append = strings.append
        for _ in range(count):
            start = position + 8
            position = start + unpack(buffer, position)[0]
            append(buffer[start:position].decode())
        if position > end:
            raise ValueError("strings beyond the end")
        self._position = position
        return strings

    def read(self, name: str) -> NDArray[np.float32]:
        """A whole tensor as float32."""
        shape = self.tensors[name].shape
        return self.rows(name, 0, shape[0])

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Rows ``start:stop`` along the first axis as float32, dequantised in small blocks.

        Raises:
            UnsupportedArchitecture: the type is known but nothing here can expand it.
        """
        tensor = self.tensors[name]
        block_values, block_bytes = GGML_QUANT_SIZES[tensor.kind]
        if len(tensor.shape) == 1:
            # One row of values; slicing it is only asked for along whole tensors.
            return self._expand(tensor, tensor.offset, tensor.size).reshape(-1)[start:stop]
        row_values = tensor.size // block_bytes * block_values // tensor.shape[0]
        row_bytes = row_values // block_values * block_bytes
        result = np.empty((stop - start, row_values), np.float32)
        step = max(1, _DEQUANTISE_VALUES // row_values)
        for first, last in _steps(start, stop, step):
            begin = tensor.offset + first * row_bytes
            expanded = self._expand(tensor, begin, (last - first) * row_bytes)
            result[first - start : last - start] = expanded.reshape(last - first, row_values)
        return result.reshape(stop - start, *tensor.shape[1:])

    def _expand(self, tensor: GgufTensor, offset: int, size: int) -> NDArray[np.float32]:
        raw = np.frombuffer(self._map, np.uint8, size, offset)
        try:
            values: NDArray[np.float32] = dequantize(raw, tensor.kind)
        except NotImplementedError as error:
            raise UnsupportedArchitecture(
                f"{self.path} stores {tensor.name} as {tensor.kind.name}, which cannot be expanded here.",
                "Use a file with one of the common types, e.g. Q4_K_M or Q8_0.",
            ) from error
        return values


def _steps(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, step):
        yield first, min(first + step, stop)
