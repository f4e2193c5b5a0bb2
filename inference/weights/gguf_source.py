"""A GGUF file as the source of a conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.weights import gguf_config, gguf_tokenizer
from inference.weights.gguf import GgufFile
from inference.weights.progress import Progress
from inference.weights.verify import checksum

_QUERY = (".self_attn.q_proj.weight", ".self_attn.q_proj.bias")
_KEY = (".self_attn.k_proj.weight", ".self_attn.k_proj.bias")


class GgufSource:
    """Reads a GGUF file under the tensor names and row orders of transformers.

    The file is opened at the first use: a path whose conversion exists is never read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: GgufFile | None = None
        self._names: dict[str, str] = {}
        self._heads: dict[tuple[str, ...], int] = {}

    def _opened(self) -> GgufFile:
        if self._file is None:
            self._file = GgufFile(self._path)
            self._names = gguf_config.transformers_names(self._file)
            config = gguf_config.read_config(self._file)
            if config["model_type"] in gguf_config.PERMUTED_ARCHITECTURES:
                self._heads = {
                    _QUERY: int(config["num_attention_heads"]),
                    _KEY: int(config["num_key_value_heads"]),
                }
        return self._file

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._path.stat().st_size

    def config(self) -> dict[str, Any]:
        """The config its metadata describe."""
        return gguf_config.read_config(self._opened())

    def names(self) -> tuple[str, ...]:
        """Names of all tensors, as in transformers."""
        self._opened()
        return tuple(self._names)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return self._opened().tensors[self._names[name]].shape

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Rows of a tensor as float32."""
        file = self._opened()
        for suffixes, heads in self._heads.items():
            if name.endswith(suffixes):
                # The wanted rows are spread over a head; these tensors are small enough to read whole.
                whole = file.read(self._names[name])
                return gguf_config.undo_permutation(whole, heads)[start:stop]
        return file.rows(self._names[name], start, stop)

    def tokenizer_json(self) -> bytes:
        """A tokenizer.json made of the file's vocabulary."""
        return gguf_tokenizer.tokenizer_json(self._opened())

    def fingerprint(self, progress: Progress) -> str:
        """SHA-256 of the file, remembered between runs."""
        return checksum(self._path, progress)
