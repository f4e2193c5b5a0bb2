"""The same over a named pipe of Windows. Untested on hardware; the standard library does the work."""

from __future__ import annotations

import contextlib
import os
import tempfile
from multiprocessing import AuthenticationError, connection
from pathlib import Path

from inference.sharing.link import Link

_FAMILY = "AF_PIPE"


class PipeLink:
    """A connection of `multiprocessing.connection`."""

    def __init__(self, pipe: connection.Connection[bytes, bytes]) -> None:
        self._pipe = pipe
        self._timeout: float | None = None

    def send(self, data: bytes) -> None:
        """Send a message."""
        self._pipe.send_bytes(data)

    def receive(self) -> bytes | None:
        """The next message, None at the end."""
        if self._timeout is not None and not self._pipe.poll(self._timeout):
            raise TimeoutError("nothing came over the pipe")
        try:
            return self._pipe.recv_bytes()
        except EOFError:
            return None

    def set_timeout(self, seconds: float | None) -> None:
        """For `receive` only: a pipe has none for sending."""
        self._timeout = seconds

    def shut(self) -> None:
        """A pipe is closed as a whole."""
        with contextlib.suppress(OSError):
            self._pipe.close()

    def close(self) -> None:
        """The same."""
        self.shut()


class PipeListener:
    """A pipe has no owner that could be asked: a key proves that both sides read the private directory."""

    def __init__(self, name: str, key_file: Path, family: str = _FAMILY) -> None:
        self._listener = connection.Listener(name, family, authkey=secret(key_file))

    def accept(self) -> Link:
        """The next client that knows the key."""
        try:
            return PipeLink(self._listener.accept())
        except (AuthenticationError, EOFError) as error:
            raise ConnectionRefusedError("a client does not know the key") from error

    def close(self) -> None:
        """No more connections."""
        self._listener.close()


def connect_pipe(name: str, key_file: Path, timeout: float, family: str = _FAMILY) -> Link:
    """Connect to a listener.

    Raises:
        OSError: nobody listens, or somebody who does not know the key.
    """
    try:
        link = PipeLink(connection.Client(name, family, authkey=secret(key_file)))
    except (AuthenticationError, EOFError) as error:
        raise ConnectionRefusedError("the engine does not know the key") from error
    link.set_timeout(timeout)
    return link


def secret(file: Path) -> bytes:
    """The key in a private file; whoever comes first makes it."""
    if not file.exists():
        descriptor, made = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(os.urandom(32))
        # A link appears with its content, and never replaces what another process was faster to make.
        with contextlib.suppress(FileExistsError):
            os.link(made, file)
        os.unlink(made)
    return file.read_bytes()
