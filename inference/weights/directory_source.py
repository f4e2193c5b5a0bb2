"""A model directory in the layout of transformers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.weights.model_config import normalised, token_list
from inference.weights.progress import Progress
from inference.weights.safetensors_file import SafetensorsFile
from inference.weights.verify import checksum

_INDEX = "model.safetensors.index.json"


class DirectorySource:
    """``config.json``, ``tokenizer.json`` and one or more ``*.safetensors`` files.

    Raises:
        UnsupportedArchitecture: one of the three is missing in the form needed.
        CorruptFile: a file is damaged or a shard is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not (path / "config.json").is_file():
            raise UnsupportedArchitecture(
                f"{path} has no config.json, so it is no model directory.",
                "Point to a GGUF file, or to a directory with config.json, tokenizer.json and *.safetensors.",
            )
        if not (path / "tokenizer.json").is_file():
            raise UnsupportedArchitecture(
                f"{path} has no tokenizer.json (a slow tokenizer's files alone are not enough).",
                "Save the fast tokenizer there: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR).",
            )
        self._shards = self._find_shards()
        self._opened: dict[str, SafetensorsFile] | None = None

    def _find_shards(self) -> tuple[Path, ...]:
        index = self._path / _INDEX
        if index.is_file():
            named = set(self._json(_INDEX).get("weight_map", {}).values())
            shards = tuple(self._path / name for name in sorted(named))
            missing = [shard.name for shard in shards if not shard.is_file()]
            if missing:
                raise CorruptFile(
                    f"{self._path} lacks {', '.join(missing)}, which its index names.", "Fetch it again."
                )
        else:
            # Some directories also hold the same weights under their makers' own names.
            named_as_usual = sorted(self._path.glob("model*.safetensors"))
            shards = tuple(named_as_usual or sorted(self._path.glob("*.safetensors")))
        if not shards:
            raise UnsupportedArchitecture(
                f"{self._path} has no *.safetensors file.",
                "Convert its weights with save_pretrained(DIR, safe_serialization=True).",
            )
        return shards

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads((self._path / name).read_text(encoding="utf-8"))
        except ValueError as error:
            raise CorruptFile(
                f"{self._path / name} is not valid JSON: {error}.", "Fetch it again."
            ) from error
        if not isinstance(value, dict):
            raise CorruptFile(f"{self._path / name} holds no JSON object.", "Fetch it again.")
        return value

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes of all shards."""
        return sum(shard.stat().st_size for shard in self._shards)

    def config(self) -> dict[str, Any]:
        """config.json, with the end tokens of generation_config.json where there is one."""
        config = self._json("config.json")
        ends = token_list(config.get("eos_token_id"))
        if (self._path / "generation_config.json").is_file():
            ends += token_list(self._json("generation_config.json").get("eos_token_id"))
        config["eos_token_ids"] = sorted(set(ends))
        return normalised(config, str(self._path))

    def _tensors(self) -> dict[str, SafetensorsFile]:
        if self._opened is None:
            self._opened = {}
            for shard in self._shards:
                file = SafetensorsFile(shard)
                # Some exporters leave out the prefix that the causal model gives its body.
                self._opened |= {_canonical(name): file for name in file.names}
        return self._opened

    def names(self) -> tuple[str, ...]:
        """Names of all tensors."""
        return tuple(self._tensors())

    def _stored_name(self, name: str) -> tuple[SafetensorsFile, str]:
        file = self._tensors()[name]
        return file, name if name in file.names else name.removeprefix("model.")

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        file, stored = self._stored_name(name)
        return file.shape(stored)

    def rows(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Rows of a tensor as float32."""
        file, stored = self._stored_name(name)
        return file.rows(stored, start, stop)

    def tokenizer_json(self) -> bytes:
        """tokenizer.json as it is."""
        return (self._path / "tokenizer.json").read_bytes()

    def fingerprint(self, progress: Progress) -> str:
        """Hash over the names and checksums of all files read; each checksum is remembered."""
        digest = hashlib.sha256()
        extra = [self._path / name for name in ("config.json", "tokenizer.json", "generation_config.json")]
        for file in sorted((*self._shards, *(path for path in extra if path.is_file()))):
            digest.update(f"{file.name}\0{checksum(file, progress)}\n".encode())
        return digest.hexdigest()


def _canonical(name: str) -> str:
    return name if name.startswith(("model.", "lm_head.")) else f"model.{name}"
