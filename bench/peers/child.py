"""A process of a system under test: its last words, and its end."""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from bench.machine import cpu_seconds_of, memory_of
from bench.peers.base import PeerFailed, Usage

_STOP_SECONDS = 5.0
_TAIL_BYTES = 8192


class Child:
    """A running process. What it writes to stderr, and to stdout without ``pipes``, goes to a log.

    It gets a session of its own, so that Ctrl-C reaches this process alone, which then calls ``end``; should
    nobody call it, the interpreter does when it exits.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, pipes: bool = False
    ) -> None:
        """Start it.

        Raises:
            PeerFailed: it cannot be started.
        """
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else self._log,
                stderr=self._log,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise PeerFailed(
                f"{command[0]} cannot be started ({error.strerror}); check the path, and that it may be run"
            ) from error
        atexit.register(self.end)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, None while it runs."""
        return self._process.poll()

    @property
    def input(self) -> IO[bytes]:
        """Its stdin; only with ``pipes``."""
        assert self._process.stdin is not None, "started without pipes"
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        """Its stdout; only with ``pipes``."""
        assert self._process.stdout is not None, "started without pipes"
        return self._process.stdout

    def log(self) -> str:
        """The end of what it wrote."""
        # Not by seek and read: the process shares the position of this file and would go on writing there.
        descriptor = self._log.fileno()
        start = max(os.fstat(descriptor).st_size - _TAIL_BYTES, 0)
        return os.pread(descriptor, _TAIL_BYTES, start).decode("utf-8", errors="replace")

    def last_lines(self, count: int = 15) -> str:
        """The last lines of the log, or that there is none."""
        lines = [line for line in self.log().splitlines() if line.strip()]
        return "\n".join(lines[-count:]) or "(it wrote nothing)"

    def usage(self) -> Usage:
        """Now."""
        private, mapped = memory_of([self.pid])
        return Usage(cpu_seconds_of([self.pid]), private, mapped)

    def end(self) -> None:
        """Terminate it, and kill it if it does not obey. Idempotent."""
        atexit.unregister(self.end)
        if self._log.closed:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except BaseException as error:  # also a second Ctrl-C
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()
