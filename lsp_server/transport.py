"""Bytes in, bytes out: stdio and TCP.

pygls' own loops are not used, because they lose the exit code, need three thread hops a message, and
wait at the end for a thread that blocks in ``read``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
from typing import BinaryIO

from lsp_server.rpc import DraftlineProtocol
from lsp_server.stdio import Connection

_log = logging.getLogger(__name__)

# A client that is gone must not leave a process behind, even one that is deep inside native code.
GRACE_SECONDS = 3.0
MAX_MESSAGE = 256 * 1024 * 1024
_MAX_HEADER_LINE = 4096


class FrameWriter:
    """The writer pygls sends through: one write for each message, from the loop's thread only."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._broken = False

    def write(self, data: bytes) -> None:
        """Send; a client that is gone is noticed by the reader, so failures are only logged."""
        if self._broken:
            return
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._broken = True
            _log.warning("the client no longer reads: %s", error)

    def close(self) -> None:
        """Flush; the process ends right after."""
        if not self._broken:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._broken = True


class FramingError(Exception):
    """The stream is not in the base protocol's format; there is no way to find the next message."""


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next message's body, None at the end of the stream (LSP 3.18, "Base Protocol").

    Raises:
        FramingError
    """
    length: int | None = None
    while True:
        line = stream.readline(_MAX_HEADER_LINE)
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            if length is None:
                # Stray line ends between messages do no harm.
                continue
            break
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\n"):
            raise FramingError(f"not a header: {line[:80]!r}")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if not text.isdigit() or int(text) > MAX_MESSAGE:
                raise FramingError(f"not an acceptable length: {text[:80]!r}")
            length = int(text)
    body = stream.read(length)
    return body if len(body) == length else None


def accept_tcp(host: str, port: int) -> Connection:
    """Wait for one client; prints the address (port 0 takes any free one) to stderr."""
    with socket.create_server((host, port)) as server:
        bound = server.getsockname()
        print(f"draftline: listening on {bound[0]}:{bound[1]}", file=sys.stderr, flush=True)
        client, _ = server.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(client.makefile("rb"), client.makefile("wb"))


def serve(protocol: DraftlineProtocol, connection: Connection) -> int:
    """Run until the client says ``exit`` or is gone.

    Returns:
        the exit status: 0 after ``shutdown`` and ``exit``, else 1.
    """
    return asyncio.run(_serve(protocol, connection))


async def _serve(protocol: DraftlineProtocol, connection: Connection) -> int:
    loop = asyncio.get_running_loop()
    messages: asyncio.Queue[bytes | None] = asyncio.Queue()
    protocol.set_writer(FrameWriter(connection.writer))
    threading.Thread(
        target=_read_all, args=(connection.reader, loop, messages), name="lsp-reader", daemon=True
    ).start()
    while (body := await messages.get()) is not None:
        try:
            protocol.receive(body)
        except SystemExit as exit:
            return int(exit.code or 0)
        # A request's handler runs up to its first await before the next message is looked at: it must
        # see the text as it was when the request arrived.
        await asyncio.sleep(0)
    _log.info("the client closed the connection")
    return 1


def _read_all(
    stream: BinaryIO, loop: asyncio.AbstractEventLoop, messages: asyncio.Queue[bytes | None]
) -> None:
    try:
        while (body := read_frame(stream)) is not None:
            loop.call_soon_threadsafe(messages.put_nowait, body)
    except FramingError as error:
        _log.error("the connection is out of step: %s", error)
    except (OSError, ValueError) as error:
        _log.warning("reading from the client failed: %s", error)
    except RuntimeError:
        return  # the loop has ended
    try:
        loop.call_soon_threadsafe(messages.put_nowait, None)
    except RuntimeError:
        return
    threading.Event().wait(GRACE_SECONDS)
    os._exit(1)
