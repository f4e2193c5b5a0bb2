"""What lies in Draftline's directory, and which of it nothing will use again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from inference import paths
from inference.api import EngineConfig
from inference.errors import UnknownModel
from inference.precision import Precision, precision_of
from inference.weights import catalog, convert, fetch, mirror, store


@dataclass(frozen=True)
class StoredFile:
    """A file or directory of ours.

    Attributes:
        kind: ``original``, ``converted`` or ``unfinished``.
        numerics: of a conversion, else "".
        stale: why nothing will use it again, "" if it is in use or may be.
    """

    path: str
    kind: str
    bytes: int
    numerics: str = ""
    source: str = ""
    stale: str = ""


@dataclass(frozen=True)
class ModelFiles:
    """The model asked for, and everything in the home directory.

    Attributes:
        name: as asked for.
        original: the weights as published, None if they are not on this machine.
        ready: a conversion to the numerics asked for is there. None for a path: telling it would
            mean hashing the file.
        download_bytes: size of the download, None if the model is in no catalog.
    """

    home: str
    name: str
    original: str | None
    ready: bool | None
    download_bytes: int | None
    stored: tuple[StoredFile, ...]

    @property
    def present(self) -> bool:
        """Whether the model can be loaded without a network."""
        return self.original is not None or bool(self.ready)


def inspect(config: EngineConfig) -> ModelFiles:
    """Look at the files for ``config``; writes nothing and hashes nothing."""
    home = str(paths.home())
    stored = tuple(_stored())
    try:
        entry = catalog.lookup(config.model)
    except UnknownModel:
        path = Path(config.model).expanduser()
        return ModelFiles(home, config.model, str(path) if path.exists() else None, None, None, stored)
    original = fetch.present(entry)
    wanted = precision_of(config)
    ready = any(_precision(_manifest(path)) == wanted for path in store.conversions(entry.name))
    return ModelFiles(
        home, entry.name, None if original is None else str(original), ready, entry.bytes, stored
    )


def _stored() -> Iterator[StoredFile]:
    known = {entry.file for entry in catalog.CATALOG.values()}
    for path in _children(paths.downloads_dir()):
        if path.name in known:
            yield StoredFile(str(path), "original", _size(path))
        elif path.name.endswith(".tmp") or path in _part_directories():
            # Parts are kept on purpose: the next fetch goes on from them.
            yield StoredFile(str(path), "unfinished", _size(path))
    for path in _children(paths.models_dir()):
        yield _conversion(path)


def _part_directories() -> set[Path]:
    return {mirror.parts_directory(entry) for entry in catalog.CATALOG.values()}


def _conversion(path: Path) -> StoredFile:
    size = _size(path)
    if path.name.startswith("."):
        name = path.name.removeprefix(".").removesuffix(".tmp")
        stale = "" if _in_progress(name) else "a conversion that was interrupted"
        return StoredFile(str(path), "unfinished", size, stale=stale)
    manifest = _manifest(path)
    precision = _precision(manifest)
    source = manifest.get("source")
    source = source if isinstance(source, dict) else {}
    where = str(source.get("path", ""))
    stale = ""
    if not convert.is_complete(path):
        stale = "files are missing or cut"
    elif manifest.get("converter_version") != convert.CONVERTER_VERSION or (
        manifest.get("scheme") != convert.scheme_of(precision)
    ):
        stale = "made by another version of Draftline"
    elif source.get("sha256") not in _catalog_checksums() and not Path(where).exists():
        # A conversion of a path is found through the checksum of what is at the path.
        stale = "what it was made of is gone"
    return StoredFile(str(path), "converted", size, str(precision), where, stale)


def _in_progress(name: str) -> bool:
    try:
        owner = json.loads((paths.locks_dir() / f"{name}.owner.json").read_text(encoding="utf-8"))
        return bool(psutil.pid_exists(int(owner["pid"])))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / convert.MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _precision(manifest: dict[str, Any]) -> Precision:
    numerics: Any = str(manifest.get("numerics", ""))
    try:
        return Precision.parse(numerics, str(manifest.get("mixed", "")))
    except ValueError:
        return Precision(numerics)


def _catalog_checksums() -> set[str]:
    return {entry.sha256 for entry in catalog.CATALOG.values() if entry.sha256 is not None}


def _children(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())
