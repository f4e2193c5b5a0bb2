"""A connection of two processes of one user: whole messages over a Unix socket."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Protocol

MAX_MESSAGE = 64 * 1024 * 1024
# Between two looks of a listener whether its name is still there.
LOOK_SECONDS = 5.0
_LENGTH = struct.Struct("!I")

# <sys/un.h> of macOS; Python has no names for them.
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1


class Stranger(OSError):
    """The other end belongs to another user."""


class Link(Protocol):
    """Sends and receives whole messages. One thread sends, one receives."""

    def send(self, data: bytes) -> None:
        """Raises OSError: the other end is gone, or the timeout has passed."""

    def receive(self) -> bytes | None:
        """The next message; None at the end. Raises OSError, and TimeoutError after the timeout."""

    def set_timeout(self, seconds: float | None) -> None:
        """For both directions; None waits for ever."""

    def shut(self) -> None:
        """End it for both sides: whoever waits in `receive` or `send` returns. Any thread, idempotent."""

    def close(self) -> None:
        """`shut`, and give the descriptor back: when nobody uses the link any more."""


class Listener(Protocol):
    """Waits for connections."""

    def accept(self) -> Link:
        """The next one. Raises OSError when it is closed, `Stranger` for another user."""

    def close(self) -> None:
        """No more connections."""


class UnixLink:
    """A stream socket; each message has its length in front."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, data: bytes) -> None:
        """Send a message."""
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> bytes | None:
        """The next message, None at the end."""
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        (length,) = _LENGTH.unpack(head)
        if length > MAX_MESSAGE:
            raise OSError(f"a message of {length} bytes")
        return self._exactly(length)

    def set_timeout(self, seconds: float | None) -> None:
        """Of each call of the system."""
        self._socket.settimeout(seconds)

    def shut(self) -> None:
        """Wake everybody up."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the descriptor back."""
        self.shut()
        self._socket.close()

    def _exactly(self, count: int) -> bytes | None:
        parts: list[bytes] = []
        while count:
            part = self._socket.recv(min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class UnixListener:
    """A socket in a private directory. What was there before is replaced: hold the engine's lock.

    A name that somebody removed, as those do who tidy up directories, is made again: without it nobody new
    could attach, or start another process while this one has the lock.
    """

    def __init__(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        self._path = path
        self._lock = threading.Lock()
        self._closed = False
        self._socket, self._file = self._bind()

    def _bind(self) -> tuple[socket.socket, tuple[int, int]]:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(str(self._path))
            os.chmod(self._path, 0o600)
            made.listen(64)
            made.settimeout(LOOK_SECONDS)
            return made, _identity(self._path)
        except OSError:
            made.close()
            raise

    def accept(self) -> Link:
        """The next client of the same user."""
        while True:
            try:
                connection, _ = self._socket.accept()
                break
            except TimeoutError:
                self._renew()
        connection.settimeout(None)
        try:
            check_peer(connection)
        except OSError:
            connection.close()
            raise
        return UnixLink(connection)

    def close(self) -> None:
        """Take the name away first: who comes now finds nobody, and starts anew."""
        with self._lock:
            self._closed = True
            with contextlib.suppress(OSError):
                if _identity(self._path) == self._file:  # else it is that of another process by now
                    self._path.unlink()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def _renew(self) -> None:
        with self._lock:
            if self._closed or os.path.lexists(self._path):
                return
            # It may be impossible, as without the directory; there will be another look.
            with contextlib.suppress(OSError):
                old = self._socket
                self._socket, self._file = self._bind()
                old.close()


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


def connect_unix(path: Path, timeout: float) -> Link:
    """Connect to a listener.

    Raises:
        OSError: nobody listens. TimeoutError: somebody does, and is too busy.
        Stranger: it is another user's.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(str(path))
        check_peer(connection)
    except OSError:
        connection.close()
        raise
    return UnixLink(connection)


def check_peer(connection: socket.socket) -> None:
    """Both ends must be the same user's; the directory's mode says so already, but not after a mistake.

    Raises:
        Stranger
    """
    uid = peer_uid(connection)
    if uid is not None and uid != os.getuid():
        raise Stranger(f"the other end belongs to user {uid}")


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end, None where the system does not tell."""
    if sys.platform.startswith("linux"):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", data)[1])
    if sys.platform == "darwin":
        # struct xucred: version, uid, number of groups, groups (untested on hardware)
        data = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 4 + 4 + 4 + 16 * 4)
        return int(struct.unpack_from("=II", data)[1])
    return None
