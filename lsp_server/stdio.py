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


def open_missing_streams() -> None:
    """Give standard streams that the caller has closed to the null device.

    Otherwise the next file that is opened, or a socket, gets the number of one, and what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    # Python has none for a descriptor that was closed when it started.
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def flushed() -> bool:
    """Flush stdout and stderr; False if what was printed is lost, which is then not tried again."""
    whole = True
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            whole = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            if number == 1 and not isinstance(error, BrokenPipeError):
                print(f"draftline: the output cannot be written: {error.strerror}", file=sys.stderr)
    return whole


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
