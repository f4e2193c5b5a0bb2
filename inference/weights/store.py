"""The one entry point to weights: from a name or path to files the engine can map."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference import paths
from inference.api import Numerics
from inference.errors import ChecksumMismatch, CorruptFile, ModelNotFetched
from inference.precision import Precision
from inference.weights import catalog, convert, fetch
from inference.weights.catalog import CatalogEntry
from inference.weights.lock import exclusive
from inference.weights.progress import NoProgress, Progress
from inference.weights.source import open_source


@dataclass(frozen=True)
class PreparedModel:
    """A converted model on this disk.

    Attributes:
        path: directory with ``model.safetensors``, ``config.json``, ``tokenizer.json``, ``manifest.json``.
        config: config.json; fields as ``model_config.normalised`` describes them.
        source: what it was made of, for people.
        fetched: this call downloaded the weights.
        converted: this call converted them.
    """

    path: Path
    config: dict[str, Any]
    numerics: Numerics
    source: str
    fetched: bool = False
    converted: bool = False

    @property
    def weights(self) -> Path:
        """The safetensors file."""
        return self.path / convert.WEIGHTS

    @property
    def tokenizer(self) -> Path:
        """The tokenizer.json."""
        return self.path / convert.TOKENIZER


@dataclass(frozen=True)
class ModelStatus:
    """A catalog entry as found on this machine; ``original`` is None if not fetched."""

    entry: CatalogEntry
    original: Path | None
    converted: tuple[Path, ...]


def prepare(
    model: str,
    numerics: Numerics,
    *,
    allow_download: bool = False,
    progress: Progress | None = None,
    mixed: str = "",
) -> PreparedModel:
    """Have a model ready for the engine; when all is on disk this takes milliseconds and no network.

    Args:
        model: a catalog name, a ``.gguf`` file or a directory in transformers layout.
        numerics: of the linear weights.
        allow_download: fetch what is missing.
        mixed: other numerics for some of them, see `inference.precision`.

    Raises:
        ValueError: ``mixed`` cannot be read.
        UnknownModel: neither a name nor a path.
        ModelNotFetched: it is not here and may not be fetched.
        NoNetwork, DiskFull, ChecksumMismatch, CorruptFile, UnsupportedArchitecture, UnsupportedNumerics
    """
    progress = progress or NoProgress()
    precision = Precision.parse(numerics, mixed)
    path = as_path(model)
    if path is not None:
        return _from_path(path, path.stem if path.suffix == ".gguf" else path.name, precision, progress)
    entry = catalog.lookup(model)
    if entry.sha256 is not None:
        # The catalog's checksum names the conversion, so it is found without the original.
        target = convert.target_directory(entry.name, entry.sha256, precision)
        if convert.is_complete(target):
            return _opened(target, numerics, entry.name)
    fetched = False
    try:
        original = fetch.locate(entry, progress)
    except ChecksumMismatch:
        if not allow_download:
            raise
        original = None  # the fetch replaces it
    if original is None:
        if not allow_download:
            raise ModelNotFetched(
                f"The weights of {entry.name} are not on this machine.",
                f"Run `draftline model fetch {entry.name}` once; after that no network is needed.",
            )
        original = fetch.fetch(entry, progress)
        fetched = True
    prepared = _from_path(original, entry.name, precision, progress)
    return PreparedModel(
        prepared.path, prepared.config, numerics, entry.name, fetched, converted=prepared.converted
    )


def as_path(model: str) -> Path | None:
    """The path a model argument means; a plain word is a catalog name even if a file has it."""
    path = Path(model).expanduser()
    looks_like_path = path.suffix.lower() == ".gguf" or len(path.parts) > 1 or model in (".", "..")
    if looks_like_path or (model not in catalog.CATALOG and path.is_dir()):
        return path.absolute()
    return None


def _from_path(path: Path, name: str, precision: Precision, progress: Progress) -> PreparedModel:
    source = open_source(path)
    source_hash = source.fingerprint(progress)
    target = convert.target_directory(name, source_hash, precision)
    if convert.is_complete(target):
        return _opened(target, precision.base, str(path))
    with exclusive(target.name, f"converting {name} to {precision}", progress):
        done_by_another = convert.is_complete(target)
        if not done_by_another:
            convert.convert(source, source_hash, precision, target, progress)
    return _opened(target, precision.base, str(path), converted=not done_by_another)


def _opened(directory: Path, numerics: Numerics, source: str, converted: bool = False) -> PreparedModel:
    try:
        config = json.loads((directory / convert.CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptFile(
            f"{directory / convert.CONFIG} is damaged.",
            f"Delete {directory}; it is made again at the next start.",
        ) from error
    return PreparedModel(directory, config, numerics, source, converted=converted)


def conversions(name: str) -> tuple[Path, ...]:
    """Complete conversions of a catalog name, one directory each."""
    pattern = re.compile(convert.directory_pattern(name))
    if not paths.models_dir().is_dir():
        return ()
    found = (path for path in paths.models_dir().iterdir() if pattern.fullmatch(path.name))
    return tuple(sorted(path for path in found if convert.is_complete(path)))


def list_models() -> list[ModelStatus]:
    """Every catalog entry and what of it is on this machine."""
    return [
        ModelStatus(entry, fetch.present(entry), conversions(entry.name))
        for entry in catalog.CATALOG.values()
    ]


def locate(name: str) -> Path | None:
    """The original weights of a catalog name on this disk, or None.

    Raises:
        UnknownModel
    """
    return fetch.present(catalog.lookup(name))


def remove(name: str) -> list[Path]:
    """Delete our files of a catalog name: download, unfinished parts, conversions. Returns them.

    Files in the hub's own cache stay: other programs share it.

    Raises:
        UnknownModel
    """
    entry = catalog.lookup(name)
    removed: list[Path] = []
    with exclusive(entry.name, f"removing {entry.name}", NoProgress()):
        pattern = re.compile(r"\.?" + convert.directory_pattern(entry.name) + r"(\.tmp)?")
        candidates = [
            path
            for path in (paths.models_dir().iterdir() if paths.models_dir().is_dir() else ())
            if pattern.fullmatch(path.name)
        ]
        for path in (*candidates, *fetch.own_files(entry)):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.exists():
                path.unlink()
            else:
                continue
            removed.append(path)
    return removed
