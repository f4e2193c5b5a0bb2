"""A real Neovim in a terminal: what a user sees, and questions in Lua beside it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.editors.neovim import Talk, prepared
from tests.editors.terminal import Terminal


class TerminalNeovim(Talk):
    """As ``Neovim``, with a ``terminal`` that shows it."""

    def __init__(
        self,
        binary: str,
        directory: Path,
        init: str,
        files: tuple[Path, ...],
        env: Mapping[str, str],
        *,
        cpus: set[int] | None = None,
        height: int = 30,
    ) -> None:
        self._sockets = tempfile.TemporaryDirectory(prefix="nvim-")
        super().__init__(os.path.join(self._sockets.name, "s"))
        arguments, environment = prepared(directory, self._address, init, env)
        command = [binary, *arguments, *map(str, files)]
        self.terminal = Terminal(command, environment, cpus=cpus, height=height)
        try:
            self.connect(lambda: self.terminal.ended)
        except RuntimeError as error:
            screen = "\n".join(self.terminal.news) if self.terminal.ended else self.terminal.screen().text
            self.terminal.close()
            raise RuntimeError(f"{error}: {screen}") from None

    def close(self) -> None:
        """End it, and with it its server."""
        with contextlib.suppress(RuntimeError, OSError):
            # The answer never comes: Neovim is gone.
            self.run("vim.cmd('qall!')")
        end = time.monotonic() + 10
        while not self.terminal.ended and time.monotonic() < end:
            time.sleep(0.01)
        self.terminal.close()
        self.hang_up()
        self._sockets.cleanup()
