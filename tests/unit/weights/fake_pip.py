"""Stands in for pip: "downloads" a wheel from the directory FAKE_WHEELS, slowly if asked.

Called with pip's own arguments. Every download is noted in FAKE_PIP_LOG before it starts.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main() -> int:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        return 0
    assert arguments[0] == "download", arguments
    for needed in ("--no-deps", "--only-binary=:all:"):
        assert needed in arguments, arguments
    requirement = arguments[-1]
    (destination,) = (argument[7:] for argument in arguments if argument.startswith("--dest="))
    with open(os.environ["FAKE_PIP_LOG"], "a") as log:
        log.write(requirement + "\n")
    name, version = requirement.split("==")
    wheel = Path(os.environ["FAKE_WHEELS"]) / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    if not wheel.is_file():
        print(f"ERROR: No matching distribution found for {requirement}")
        return 1
    data = wheel.read_bytes()
    with open(Path(destination) / wheel.name, "wb") as output:
        for start in range(0, len(data), 1 + len(data) // 4):
            output.write(data[start : start + 1 + len(data) // 4])
            output.flush()
            time.sleep(float(os.environ.get("FAKE_PIP_DELAY", "0")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
