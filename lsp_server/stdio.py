"""Standard input and output, kept clean of everything that is not ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TextIO


@dataclass(frozen=True)
class Connection:
    """Two binary streams of one client."""

    reader: BinaryIO
    writer: BinaryIO


def claim_stdio() -> Connection:
    """Take stdin and stdout for the protocol alone.

    Afterwards file descriptor 1 is stderr and 0 is empty, so that neither a ``print`` nor a native
    library nor a child process can get between the messages.
    """
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(0, os.O_BINARY)
        msvcrt.setmode(1, os.O_BINARY)
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = sys.stderr
    return Connection(reader, writer)


@contextmanager
def clean_stdout() -> Iterator[TextIO]:
    """A stream to the real stdout, while file descriptor 1 is stderr for everyone else."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(real), "w", encoding="utf-8", newline="\n") as stream:
            yield stream
    finally:
        os.dup2(real, 1)
        os.close(real)
