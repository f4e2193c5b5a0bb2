"""Where a conversion reads from: a GGUF file or a directory in transformers layout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inference.errors import UnknownModel, UnsupportedArchitecture
from inference.weights.progress import Progress

# Rows are read in blocks of about this many float32 values, to bound memory: an embedding of
# 152k rows would take 2.2 GB at a width of 3584.
BLOCK_VALUES = 8 * 2**20


class ModelSource(Protocol):
    """Weights under the names of transformers, whatever file they come from."""

    @property
    def path(self) -> Path:
        """The file or directory."""

    @property
    def size(self) -> int:
        """Size of the weights on disk."""

    def config(self) -> dict[str, Any]:
        """The normalised config, see ``model_config.normalised``."""

    def names(self) -> tuple[str, ...]:
        """Names of the tensors, e.g. ``model.layers.0.mlp.up_proj.weight``."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor; linear weights are [outputs, inputs]."""

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Rows ``start:stop`` of a tensor as float32."""

    def tokenizer_json(self) -> bytes:
        """Contents of tokenizer.json."""

    def fingerprint(self, progress: Progress) -> str:
        """SHA-256 over everything the conversion depends on; remembered between runs."""


def read(source: ModelSource, name: str) -> NDArray[np.float32]:
    """A whole tensor."""
    return source.rows(name, 0, source.shape(name)[0])


def blocks(source: ModelSource, name: str) -> Iterator[NDArray[np.float32]]:
    """A tensor in blocks of rows, each of at most BLOCK_VALUES values (or one row)."""
    shape = source.shape(name)
    step = max(1, BLOCK_VALUES // int(np.prod(shape[1:], dtype=np.int64)))
    for start in range(0, shape[0], step):
        yield source.rows(name, start, min(start + step, shape[0]))


def open_source(path: Path) -> ModelSource:
    """The source at a path.

    Raises:
        UnknownModel: there is nothing at the path.
        UnsupportedArchitecture: neither a GGUF file nor a model directory.
        CorruptFile: it is one, but damaged.
    """
    if path.is_dir():
        from inference.weights.directory_source import DirectorySource

        return DirectorySource(path)
    if not path.exists():
        raise UnknownModel(f"There is no model at {path}.", "Check the path, or see `draftline model list`.")
    if path.suffix.lower() == ".gguf":
        # Imported here: it pulls in the gguf package, which directories and converted models spare.
        from inference.weights.gguf_source import GgufSource

        return GgufSource(path)
    raise UnsupportedArchitecture(
        f"{path} is neither a .gguf file nor a model directory.",
        "Point to a GGUF file, or to a directory with config.json, tokenizer.json and *.safetensors.",
    )
