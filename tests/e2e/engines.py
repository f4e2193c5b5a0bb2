"""The engine processes that servers of a test share."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from inference.sharing.inspect import Running, running_engines


class Engines:
    """The engine processes in a directory, the one that DRAFTLINE_RUNTIME_DIR names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def processes(self) -> list[psutil.Process]:
        """Those whose command line names the directory, whether they answer or not."""
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            words = process.info["cmdline"] or []
            named = any(f'"directory": "{self.directory}"' in word for word in words)
            if named and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found

    def answering(self) -> list[Running]:
        return running_engines(self.directory)

    def the_one(self) -> Running:
        (engine,) = self.answering()
        return engine

    async def until(self, accept: Callable[[Engines], bool], timeout: float = 60) -> None:
        async with asyncio.timeout(timeout):
            while not await asyncio.to_thread(accept, self):
                await asyncio.sleep(0.02)

    def end(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
                process.kill()
                process.wait(10)


@contextlib.contextmanager
def own_engines() -> Iterator[Engines]:
    """Engines in a directory of their own; those that were started there are ended in the end."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # a socket's name must be short
        engines = Engines(Path(directory))
        try:
            yield engines
        finally:
            engines.end()
