"""Real editors with the real server as windows of one user, which are written in, looked at and killed.

What they share, the weights and the directory of the engine processes, is in their variables.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.editors import emacs, vscode
from tests.editors.emacs import Emacs
from tests.editors.neovim import ROOT, binaries, lua_list
from tests.editors.neovim_terminal import TerminalNeovim
from tests.editors.real_weights import linked_home
from tests.editors.terminal import TMUX
from tests.editors.vscode_page import Page, PageError
from tests.editors.vscode_session import Session, package, session

COMMAND = ("-m", "lsp_server", "lsp")
READY_SECONDS = 120.0
# Behind this the model always goes on, and each number is a text that no request was for.
HEAD, LINE = "def plus_{number}(value):", "    return "


def shared_variables(directory: Path, runtime: Path) -> dict[str, str]:
    """What makes windows those of one user: a home inside ``directory``, and engines in ``runtime``."""
    return {
        "DRAFTLINE_HOME": str(linked_home(directory)),
        "DRAFTLINE_RUNTIME_DIR": str(runtime),
        "DRAFTLINE_SHARED_ENGINE": "1",
        "PYTHONPATH": str(ROOT),
    }


class Window(ABC):
    """An editor with a file below ``directory`` and a server that is ready.

    Attributes:
        name: of the editor, with its version.
        pid: the editor's process.
        server: the process of its server.
    """

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        self._open(directory, env)
        try:
            self.name, self.pid = self._ready()
            self.server = _server_below(self.pid)
        except BaseException:
            self.close()
            raise

    def write(self, number: int) -> None:
        """Replace the document by the beginning of a function, to which the server has no answer yet."""
        self._write(HEAD.format(number=number), LINE)

    def suggested(self, seconds: float = 60) -> str:
        """Wait for a suggestion on screen, asking again as long as there is none; the line with it.

        Raises:
            AssertionError: there is none within the time.
        """
        end = time.monotonic() + seconds
        patience = 1.0
        while (drawn := self._drawn(patience)) is None:
            assert time.monotonic() < end, f"{self.name} shows no suggestion"
            self._again()
            patience += 0.5  # asking again ends what is on its way, and a slow machine must get to its end
        assert drawn.startswith(LINE) and len(drawn) > len(LINE), f"{self.name} shows {drawn!r}"
        return drawn

    def completes(self, number: int) -> tuple[float, str]:
        """Write and wait for a suggestion: seconds from the first key on, and the line."""
        began = time.monotonic()
        self.write(number)
        drawn = self.suggested()
        return time.monotonic() - began, drawn

    def kill(self) -> None:
        """End the editor at once, as a crash does, and wait for the end of its server."""
        server = psutil.Process(self.server)
        self._kill()
        end = time.monotonic() + 30
        while not _ended(server):
            assert time.monotonic() < end, f"the server of {self.name} outlives it"
            time.sleep(0.02)
        self.close()

    @abstractmethod
    def _open(self, directory: Path, env: Mapping[str, str]) -> None:
        """Start the editor."""

    @abstractmethod
    def _ready(self) -> tuple[str, int]:
        """Wait for the server; ``name`` and ``pid``."""

    @abstractmethod
    def _write(self, head: str, line: str) -> None:
        """Replace the document by two lines, by keys."""

    @abstractmethod
    def _again(self) -> None:
        """Take the last character back and type it again."""

    @abstractmethod
    def _drawn(self, seconds: float) -> str | None:
        """The line of the cursor as it is on screen; None if no suggestion comes within the time."""

    def _kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    @abstractmethod
    def close(self) -> None:
        """End it, and with it its server."""


class NeovimWindow(Window):
    """Neovim in tmux."""

    def _open(self, directory: Path, env: Mapping[str, str]) -> None:
        file = directory / "main.py"
        file.touch()
        command = lua_list((sys.executable, *COMMAND))
        # What is typed is all there shall be.
        init = f"vim.cmd('filetype indent off')\nrequire('draftline').setup({{ cmd = {command} }})\n"
        self._editor = TerminalNeovim(binaries()[0], directory, init, (file,), env)

    def _ready(self) -> tuple[str, int]:
        self._editor.until("require('draftline').status_info().kind", "ready", READY_SECONDS)
        version = self._editor.lua("tostring(vim.version())")
        return f"Neovim {version}", int(self._editor.lua("vim.fn.getpid()"))

    def _write(self, head: str, line: str) -> None:
        self._editor.keys("<Esc><Cmd>%delete<CR>i")
        self._editor.until("vim.api.nvim_get_mode().mode == 'i' and vim.fn.wordcount().chars < 2")
        self._editor.terminal.type(f"{head}\n{line}")
        self._editor.until(
            "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')", f"{head}\n{line}"
        )

    def _again(self) -> None:
        self._editor.terminal.keys("BSpace", "Space")

    def _drawn(self, seconds: float) -> str | None:
        try:
            ghost = self._editor.ghost(seconds=seconds)
        except AssertionError:
            return None
        drawn = (LINE + str(ghost).split("\n")[0]).rstrip()
        self._editor.terminal.until(lambda screen: drawn in screen.lines)
        return drawn

    def close(self) -> None:
        self._editor.close()


class EmacsWindow(Window):
    """Emacs with lsp-mode in tmux."""

    def _open(self, directory: Path, env: Mapping[str, str]) -> None:
        folder = directory / "project"
        folder.mkdir()
        file = folder / "main.py"
        file.touch()
        binary, why = emacs.found()
        assert binary, why
        before = f"(setq draftline-command (list {' '.join(map(emacs.lisp, (sys.executable, *COMMAND)))}))"
        # What is typed is all there shall be.
        self._editor = Emacs(binary, directory, before, "(electric-indent-mode -1)", file, env)

    def _ready(self) -> tuple[str, int]:
        self._editor.until('(equal (car draftline--status) "ready")', True, READY_SECONDS)
        return f"Emacs {self._editor.lisp('emacs-version')}", int(self._editor.lisp("(emacs-pid)"))

    def _write(self, head: str, line: str) -> None:
        self._editor.keys("C-x", "h", "C-w")
        self._editor.until("(buffer-size)", 0)
        self._editor.type(f"{head}\n{line}")
        self._editor.until("(buffer-substring-no-properties (point-min) (point-max))", f"{head}\n{line}")

    def _again(self) -> None:
        self._editor.keys("BSpace", "Space")

    def _drawn(self, seconds: float) -> str | None:
        try:
            self._editor.until("(shown)", seconds=seconds)
        except AssertionError:
            return None
        # Behind a margin of lsp-mode's.
        drawn = re.compile(re.escape(LINE) + r"\S.*")
        screen = self._editor.terminal.until(lambda screen: drawn.search(screen.text))
        found = drawn.search(screen.text)
        assert found is not None
        return found[0]

    def close(self) -> None:
        self._editor.close()


class VSCodeWindow(Window):
    """VS Code in a headless Chromium."""

    def _open(self, directory: Path, env: Mapping[str, str]) -> None:
        self._stack = contextlib.ExitStack()
        self._session: Session = self._stack.enter_context(
            session(directory, package(), "pass\n", "main.py", **env)
        )

    def _ready(self) -> tuple[str, int]:
        return f"VS Code {vscode.version()}", self._session.code.pid

    @property
    def _page(self) -> Page:
        return self._session.page

    def _write(self, head: str, line: str) -> None:
        self._page.press("Control+a", "Delete")
        self._page.until_text("")
        # The editor indents by itself.
        self._page.type([*head, "Enter", *line.lstrip()], per_second=100)
        self._page.until_text(f"{head}\n{line}")

    def _again(self) -> None:
        self._page.press("Backspace", "Space")

    def _drawn(self, seconds: float) -> str | None:
        try:
            return self._page.until_ghost(seconds).drawn[1]
        except PageError:
            return None

    def _kill(self) -> None:
        # All but the server and the program between, which are to see for themselves that the editor is gone.
        server = psutil.Process(self.server)
        spared = (server, server.parent())
        editor = psutil.Process(self.pid)
        for process in (editor, *editor.children(recursive=True)):
            if process not in spared:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def close(self) -> None:
        self._stack.close()


KINDS: dict[str, type[Window]] = {"neovim": NeovimWindow, "emacs": EmacsWindow, "vscode": VSCodeWindow}


def missing(kind: str) -> str:
    """What is not there of what a window of KINDS needs, "" if all is."""
    if kind == "vscode":
        return vscode.missing()
    if kind == "emacs":
        return emacs.found()[1]
    if TMUX is None:
        return "there is no tmux on the PATH"
    return "" if binaries() else "there is no Neovim: put `nvim` on the PATH, or name it in DRAFTLINE_NVIM"


def _ended(process: psutil.Process) -> bool:
    """Whether a process is gone, or only waits for somebody to ask for its status."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _server_below(pid: int) -> int:
    """The process of Draftline that an editor started, itself or through others."""
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if tuple(process.cmdline()[1 : 1 + len(COMMAND)]) == COMMAND:
                return process.pid
    raise AssertionError(f"process {pid} has no server")
