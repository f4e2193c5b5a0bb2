"""Rewriting a model once into the form the engine maps: fused, quantised, aligned."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference import paths
from inference.api import NUMERICS, Numerics
from inference.errors import CorruptFile
from inference.precision import HEAD, Precision
from inference.weights import forms, layout, quantize
from inference.weights.disk import (
    disk_full_explained,
    read_json,
    require_room,
    sync_directory,
    sync_file,
    write_json,
)
from inference.weights.progress import Progress
from inference.weights.safetensors_file import SafetensorsWriter
from inference.weights.source import ModelSource, blocks, read
from inference.weights.verify import sha256_of

# Part of the key of a converted model: raise it when the same source converts to other bytes.
CONVERTER_VERSION = 1

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"

_FLOAT16_MAX = 65504.0

_LABEL = "(?:" + "|".join(NUMERICS).replace("-", "_") + ")(?:_mixed)?"


def target_directory(name: str, source_hash: str, precision: Precision) -> Path:
    """Where the conversion of a source lives; another source, precision or converter has another."""
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "model"
    parts = f"{source_hash}\n{precision.base}\n{CONVERTER_VERSION}\n{quantize.SCHEME}"
    if precision.used & {"nf4", "llm-int8"}:
        parts += f"\n{forms.BITSANDBYTES_SCHEME}"
    if precision.rules:
        parts += f"\n{precision.mixed}"
    label = precision.base.replace("-", "_") + ("_mixed" if precision.rules else "")
    return paths.models_dir() / f"{slug}-{label}-{hashlib.sha256(parts.encode()).hexdigest()[:12]}"


def directory_pattern(name: str) -> str:
    """A regular expression for the names of all conversions of a catalog name."""
    return re.escape(name) + rf"-{_LABEL}-[0-9a-f]{{12}}"


def label_of(directory: Path) -> str:
    """What a conversion's name says of its numerics, e.g. ``int8``, ``llm-int8`` or ``int8-mixed``."""
    return directory.name.rsplit("-", 2)[1].replace("_", "-")


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
    source: ModelSource, source_hash: str, precision: Precision, target: Path, progress: Progress
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
    precision.check(len(tensors.layers))
    config["tie_word_embeddings"] = tensors.tied
    tokenizer = source.tokenizer_json()

    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    total = _estimated_bytes(source, tensors, precision)
    require_room(target.parent, total, f"Converting {source.path.name} to {precision}")

    with disk_full_explained(target.parent, f"converting {source.path.name}"):
        temporary.mkdir()
        progress.begin(f"converting {source.path.name} to {precision}", total)
        try:
            names = _write_weights(source, tensors, precision, temporary / WEIGHTS, progress)
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
                "numerics": precision.base,
                "mixed": precision.mixed,
                "converter_version": CONVERTER_VERSION,
                "scheme": scheme_of(precision),
                "files": files,
                "tensors": names,
            },
        )
        if target.exists():
            shutil.rmtree(target)
        temporary.replace(target)
        sync_directory(target.parent)
        _remove_superseded(target, where, source_hash, precision)


def scheme_of(precision: Precision) -> str:
    """The versions of the quantised forms that a conversion has, as its manifest notes them."""
    schemes = [quantize.SCHEME] if "int8" in precision.used else []
    if precision.used & {"nf4", "llm-int8"}:
        schemes.append(forms.BITSANDBYTES_SCHEME)
    return ";".join(schemes)


def _remove_superseded(target: Path, where: str, source_hash: str, precision: Precision) -> None:
    """Remove earlier conversions of this source to the same numerics: by an older converter, or of
    the file before it changed. They can be larger than the original and nothing finds them again."""
    stem = target.name.rsplit("-", 1)[0]
    for other in target.parent.glob(f"{stem}-*"):
        manifest = read_json(other / MANIFEST) or {}
        source = manifest.get("source", {})
        same = source.get("path") == where or source.get("sha256") == source_hash
        # Another mix is found again, by those who ask for it.
        if other != target and same and manifest.get("mixed", "") == precision.mixed:
            # Processes that have it mapped keep it until they end (Windows refuses; then it stays).
            shutil.rmtree(other, ignore_errors=True)


def _estimated_bytes(source: ModelSource, tensors: layout.Layout, precision: Precision) -> int:
    """Bytes of the converted weights; norms and biases are small beside them."""
    total = sum(
        forms.stored_bytes(precision.of(_layer_name(layer, name)), source.shape(part))
        for layer in tensors.layers
        for name, parts in layer.tensors.items()
        if layout.is_linear(name)
        for part in parts
    )
    embed = source.shape(layout.SOURCE_EMBED)
    total += forms.stored_bytes("fp16" if precision.base == "int8" else precision.embedding, embed)
    if _has_head(tensors, precision):
        total += forms.stored_bytes(precision.of(HEAD), embed)
    return total


def _layer_name(layer: layout.Layer, name: str) -> str:
    return layer.prefix + name.removesuffix(".weight")


def _has_head(tensors: layout.Layout, precision: Precision) -> bool:
    """Whether the head is stored: a tied one is the embedding where both have the same form."""
    return not tensors.tied or precision.base == "int8" or precision.of(HEAD) != precision.embedding


def _write_weights(
    source: ModelSource, tensors: layout.Layout, precision: Precision, path: Path, progress: Progress
) -> list[str]:
    # At most four linear weights per layer get a second tensor; the rest is room to spare.
    expected = sum(len(layer.tensors) + 4 for layer in tensors.layers) + 8
    written: list[str] = []
    with SafetensorsWriter(path, expected) as writer:

        def add(name: str, values: NDArray[Any]) -> None:
            writer.add(name, values)
            written.append(name)
            progress.advance(values.nbytes)

        def stream(name: str, shape: tuple[int, ...], blocks: Iterator[NDArray[Any]]) -> None:
            writer.add_blocks(name, shape, _reporting(blocks, progress))
            written.append(name)

        def embed(numerics: Numerics) -> None:
            narrow = forms.narrower(numerics)
            part = layout.SOURCE_EMBED
            stream(layout.EMBED, source.shape(part), map(narrow, _finite_blocks(source, part)))

        beside: dict[str, list[NDArray[Any]]] = {}  # what the head has beside its weight, block by block

        def head(part: str) -> float:
            """Returns the largest absolute value."""
            numerics, largest = precision.of(HEAD), 0.0

            def formed() -> Iterator[NDArray[Any]]:
                nonlocal largest
                for block in _finite_blocks(source, part):
                    largest = max(largest, float(block.max()), -float(block.min()))
                    form = forms.stored(numerics, block)
                    yield form.pop("weight")
                    for name, values in form.items():
                        beside.setdefault(name, []).append(values)

            stream(layout.HEAD, forms.stored_shape(numerics, source.shape(part)), formed())
            return largest

        source_head = layout.SOURCE_EMBED if tensors.tied else layout.SOURCE_HEAD
        if precision.base == "int8":
            # The head comes first: its pass over a tied embedding also finds the embedding's range.
            largest = head(source_head)
            if not tensors.tied:
                largest = _largest(source, layout.SOURCE_EMBED)
            embed("fp16" if largest < _FLOAT16_MAX else "bf16")
        else:
            embed(precision.embedding)
            if _has_head(tensors, precision):
                head(source_head)

        for layer in tensors.layers:
            fused = {name: _fused(source, parts) for name, parts in layer.tensors.items()}
            for name, values in _stored_layer(layer, fused, precision).items():
                add(layer.prefix + name, values)
        add(layout.FINAL_NORM, _fused(source, (layout.SOURCE_FINAL_NORM,)))
        # Last, since the length of a vocabulary may be odd and what follows stays aligned.
        for name, parts in beside.items():
            add(layout.HEAD.removesuffix("weight") + name, np.concatenate(parts))
    return written


def _stored_layer(
    layer: layout.Layer, fused: dict[str, NDArray[np.float32]], precision: Precision
) -> dict[str, NDArray[Any]]:
    numerics = {name: precision.of(_layer_name(layer, name)) for name in fused if layout.is_linear(name)}
    if set(numerics.values()) == {"int8"}:
        return quantize.quantize_layer(fused)
    result: dict[str, NDArray[Any]] = {}
    for name, values in fused.items():
        if name in numerics:
            parts = forms.stored(numerics[name], values)
            result |= {name.removesuffix("weight") + part: tensor for part, tensor in parts.items()}
        else:
            result[name] = values
    return result


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
