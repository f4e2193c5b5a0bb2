"""Rewriting a model once into the form the engine maps: fused, quantised, aligned."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference import paths
from inference.api import Numerics
from inference.errors import CorruptFile, UnsupportedNumerics
from inference.weights import layout, quantize
from inference.weights.disk import (
    disk_full_explained,
    read_json,
    require_room,
    sync_directory,
    sync_file,
    write_json,
)
from inference.weights.progress import Progress
from inference.weights.safetensors_file import SafetensorsWriter, round_to_bfloat16
from inference.weights.source import ModelSource, blocks, read
from inference.weights.verify import sha256_of

# Part of the key of a converted model: raise it when the same source converts to other bytes.
CONVERTER_VERSION = 1

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"

_FLOAT16_MAX = 65504.0
_FLOAT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


def target_directory(name: str, source_hash: str, numerics: Numerics) -> Path:
    """Where the conversion of a source lives; another source, numerics or converter has another."""
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "model"
    parts = f"{source_hash}\n{numerics}\n{CONVERTER_VERSION}\n{quantize.SCHEME}"
    return paths.models_dir() / f"{slug}-{numerics}-{hashlib.sha256(parts.encode()).hexdigest()[:12]}"


def is_complete(directory: Path) -> bool:
    """Whether all files of a converted model are there in full size; takes microseconds."""
    manifest = read_json(directory / MANIFEST)
    if manifest is None:
        return False
    try:
        return all((directory / name).stat().st_size == f["size"] for name, f in manifest["files"].items())
    except (OSError, KeyError, TypeError, AttributeError):
        return False


def damaged_files(directory: Path, progress: Progress) -> list[str]:
    """Names of files whose checksum is not the one of the conversion; reads everything."""
    manifest = read_json(directory / MANIFEST)
    if manifest is None:
        return [MANIFEST]
    return [
        name
        for name, noted in manifest["files"].items()
        if not (directory / name).is_file()
        or sha256_of(directory / name, progress, f"checking {directory.name}/{name}") != noted["sha256"]
    ]


def convert(
    source: ModelSource, source_hash: str, numerics: Numerics, target: Path, progress: Progress
) -> None:
    """Convert a source into the directory ``target``, which appears complete or not at all.

    The caller holds the lock of the target. Half-written directories of killed processes are
    removed; a damaged ``target`` is replaced.

    Raises:
        DiskFull, CorruptFile, UnsupportedArchitecture, UnsupportedNumerics
    """
    config = source.config()
    where = str(source.path)
    tensors = layout.plan(
        source.names(), int(config["num_hidden_layers"]), config["tie_word_embeddings"], where
    )
    config["tie_word_embeddings"] = tensors.tied
    tokenizer = source.tokenizer_json()

    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    total = _estimated_bytes(source, tensors, numerics)
    require_room(target.parent, total, f"Converting {source.path.name} to {numerics}")

    with disk_full_explained(target.parent, f"converting {source.path.name}"):
        temporary.mkdir()
        progress.begin(f"converting {source.path.name} to {numerics}", total)
        try:
            names = _write_weights(source, tensors, numerics, temporary / WEIGHTS, progress)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            progress.end()
        (temporary / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        (temporary / TOKENIZER).write_bytes(tokenizer)
        files = {}
        for name in (WEIGHTS, CONFIG, TOKENIZER):
            sync_file(temporary / name)
            path = temporary / name
            files[name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
        write_json(
            temporary / MANIFEST,
            {
                "source": {"path": where, "sha256": source_hash},
                "numerics": numerics,
                "converter_version": CONVERTER_VERSION,
                "scheme": quantize.SCHEME if numerics == "int8" else "",
                "files": files,
                "tensors": names,
            },
        )
        if target.exists():
            shutil.rmtree(target)
        temporary.replace(target)
        sync_directory(target.parent)
        _remove_superseded(target, where, source_hash)


def _remove_superseded(target: Path, where: str, source_hash: str) -> None:
    """Remove earlier conversions of this source to the same numerics: by an older converter, or of
    the file before it changed. They can be larger than the original and nothing finds them again."""
    stem = target.name.rsplit("-", 1)[0]
    for other in target.parent.glob(f"{stem}-*"):
        source = (read_json(other / MANIFEST) or {}).get("source", {})
        if other != target and (source.get("path") == where or source.get("sha256") == source_hash):
            # Processes that have it mapped keep it until they end (Windows refuses; then it stays).
            shutil.rmtree(other, ignore_errors=True)


def _estimated_bytes(source: ModelSource, tensors: layout.Layout, numerics: Numerics) -> int:
    """Bytes of the converted weights; norms and scales are lost in the rounding."""

    def values(name: str) -> int:
        return int(np.prod(source.shape(name), dtype=np.int64))

    linear = sum(
        values(part)
        for layer in tensors.layers
        for name, parts in layer.tensors.items()
        if layout.is_linear(name)
        for part in parts
    )
    embed = values(layout.SOURCE_EMBED)
    if numerics == "int8":
        return linear + 2 * embed + embed
    return _FLOAT_BYTES[numerics] * (linear + embed * (1 if tensors.tied else 2))


def _write_weights(
    source: ModelSource, tensors: layout.Layout, numerics: Numerics, path: Path, progress: Progress
) -> list[str]:
    # At most four linear weights per layer get a second tensor; the rest is room to spare.
    expected = sum(len(layer.tensors) + 4 for layer in tensors.layers) + 8
    written: list[str] = []
    with SafetensorsWriter(path, expected) as writer:

        def add(name: str, values: NDArray[Any]) -> None:
            writer.add(name, values)
            written.append(name)
            progress.advance(values.nbytes)

        def stream(name: str, part: str, narrow: Callable[[NDArray[np.float32]], NDArray[Any]]) -> None:
            writer.add_blocks(
                name, source.shape(part), _reporting(map(narrow, _finite_blocks(source, part)), progress)
            )
            written.append(name)

        if numerics == "int8":
            # The head comes first: its pass over a tied embedding also finds the embedding's range.
            head = layout.SOURCE_EMBED if tensors.tied else layout.SOURCE_HEAD
            scales: list[NDArray[np.float32]] = []
            largest = 0.0

            def quantized(values: NDArray[np.float32]) -> NDArray[np.int8]:
                nonlocal largest
                block, scale = quantize.quantize_rows(values)
                scales.append(scale)
                largest = max(largest, float(scale.max(initial=0.0)) * 127)
                return block

            stream(layout.HEAD, head, quantized)
            if not tensors.tied:
                largest = _largest(source, layout.SOURCE_EMBED)
            embed: Numerics = "fp16" if largest < _FLOAT16_MAX else "bf16"
            stream(layout.EMBED, layout.SOURCE_EMBED, _narrower(embed))
        else:
            scales = []
            stream(layout.EMBED, layout.SOURCE_EMBED, _narrower(numerics))
            if not tensors.tied:
                stream(layout.HEAD, layout.SOURCE_HEAD, _narrower(numerics))

        for layer in tensors.layers:
            fused = {name: _fused(source, parts) for name, parts in layer.tensors.items()}
            for name, values in _stored_layer(fused, numerics).items():
                add(layer.prefix + name, values)
        add(layout.FINAL_NORM, _fused(source, (layout.SOURCE_FINAL_NORM,)))
        if scales:
            # Last, since the length of a vocabulary may be odd and what follows stays aligned.
            add(layout.HEAD.removesuffix(".weight") + ".scale", np.concatenate(scales))
    return written


def _stored_layer(fused: dict[str, NDArray[np.float32]], numerics: Numerics) -> dict[str, NDArray[Any]]:
    if numerics == "int8":
        return quantize.quantize_layer(fused)
    narrow = _narrower(numerics)
    return {name: narrow(values) if layout.is_linear(name) else values for name, values in fused.items()}


def _narrower(numerics: Numerics) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    def to_float16(values: NDArray[np.float32]) -> NDArray[np.float16]:
        if np.abs(values).max(initial=0.0) > _FLOAT16_MAX:
            raise UnsupportedNumerics(
                "This model has weights beyond the range of fp16.", "Use --numerics bf16 or int8."
            )
        return values.astype(np.float16)

    def unchanged(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return values

    narrowers: dict[str, Callable[[NDArray[np.float32]], NDArray[Any]]] = {
        "bf16": round_to_bfloat16,
        "fp16": to_float16,
        "fp32": unchanged,
    }
    return narrowers[numerics]


def _fused(source: ModelSource, parts: tuple[str, ...]) -> NDArray[np.float32]:
    if len(parts) == 1:
        return _finite(source, parts[0], read(source, parts[0]))
    shapes = [source.shape(part) for part in parts]
    result = np.empty((sum(shape[0] for shape in shapes), *shapes[0][1:]), np.float32)
    row = 0
    for part, shape in zip(parts, shapes, strict=True):
        result[row : row + shape[0]] = _finite(source, part, read(source, part))
        row += shape[0]
    return result


def _finite_blocks(source: ModelSource, name: str) -> Iterator[NDArray[np.float32]]:
    for block in blocks(source, name):
        yield _finite(source, name, block)


def _finite(source: ModelSource, name: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
    # A sum is not finite if one term is not; float64 cannot overflow here. No mask array needed.
    if not np.isfinite(values.sum(dtype=np.float64)):
        raise CorruptFile(
            f"{source.path} has values in {name} that are no numbers.", "Fetch the model again."
        )
    return values


def _largest(source: ModelSource, name: str) -> float:
    return max(float(np.abs(block).max()) for block in _finite_blocks(source, name))


def _reporting(parts: Iterator[NDArray[Any]], progress: Progress) -> Iterator[NDArray[Any]]:
    for part in parts:
        yield part
        progress.advance(part.nbytes)
