"""Runs a language server and records what it is asked and what it answers: recorded_server.py LOG COMMAND…

Each line of LOG is ``{"at": seconds, "from": "client" | "server", "message": …}``. Bytes are passed on
as they come, before they are looked at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import IO, BinaryIO

_lock = threading.Lock()


class Messages:
    """Finds the messages in a stream of LSP's base protocol."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[object]:
        """The messages that ``data`` completes."""
        self._buffer += data
        found: list[object] = []
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n"))
            length = int(fields[b"content-length"])
            if len(rest) < length:
                break
            found.append(json.loads(rest[:length]))
            self._buffer = rest[length:]
        return found


def pass_on(source: int, target: BinaryIO, side: str, log: IO[str]) -> None:
    """Copy one direction until it ends."""
    messages = Messages()
    while data := os.read(source, 65536):
        at = time.time()
        target.write(data)
        target.flush()
        with _lock:
            for message in messages.feed(data):
                log.write(json.dumps({"at": at, "from": side, "message": message}) + "\n")
            log.flush()
    target.close()


def main() -> int:
    path, *command = sys.argv[1:]
    with open(path, "a", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None and server.stdout is not None
        to_server = (sys.stdin.fileno(), server.stdin, "client", log)
        threading.Thread(target=pass_on, args=to_server, daemon=True).start()
        pass_on(server.stdout.fileno(), sys.stdout.buffer, "server", log)
        return server.wait()


sys.exit(main())
