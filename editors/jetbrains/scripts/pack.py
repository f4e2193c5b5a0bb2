"""Packs the LSP4IJ template as a zip: the same bytes from the same files, on any machine.

Usage: ``python3 editors/jetbrains/scripts/pack.py [OUT.zip]``
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

TEMPLATE = Path(__file__).parents[1] / "draftline"


def pack(out: Path) -> None:
    """Write ``out``: one folder, its files in order, without times and rights of this machine.

    Stored, not compressed: compressed bytes depend on the version of zlib.
    """
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(TEMPLATE.iterdir()):
            entry = zipfile.ZipInfo(f"{TEMPLATE.name}/{path.name}", (1980, 1, 1, 0, 0, 0))
            # Of Unix, readable by all: ZipInfo takes the system it runs on.
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, path.read_bytes().replace(b"\r\n", b"\n"))


if __name__ == "__main__":
    chosen = Path(sys.argv[1] if len(sys.argv) > 1 else "draftline-lsp4ij.zip")
    pack(chosen)
    print(chosen)
