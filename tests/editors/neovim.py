"""A real Neovim without a screen, driven by keys and asked by Lua expressions."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "editors" / "neovim"

# Answers Lua code that comes over a socket, a line of JSON each. Starting `nvim --remote-expr` for each
# question would take several times as long as the question itself.
LISTEN = r"""
local door = vim.uv.new_pipe(false)
assert(door:bind([[ADDRESS]]))
door:listen(8, function()
  local peer, rest = vim.uv.new_pipe(false), ''
  door:accept(peer)
  peer:read_start(function(_, data)
    if not data then return peer:close() end
    rest = rest .. data
    local stop = rest:find('\n', 1, true)
    while stop do
      local code = rest:sub(1, stop - 1)
      rest = rest:sub(stop + 1)
      stop = rest:find('\n', 1, true)
      vim.schedule(function()
        local ok, value = pcall(function()
          return assert(loadstring(vim.json.decode(code)))()
        end)
        if value == nil then value = vim.NIL end
        local encoded, text = pcall(vim.json.encode, ok and { value } or { vim.NIL, tostring(value) })
        peer:write((encoded and text or vim.json.encode({ vim.NIL, text })) .. '\n')
      end)
    end
  end)
end)
"""

# What the tests look at: messages, which are kept and never wait for a key, and the ghost text.
EYES = r"""
vim.o.swapfile = false
_G.messages = {}
vim.notify = function(text) table.insert(_G.messages, text) end
function _G.ghost(name)
  local id = vim.api.nvim_create_namespace(name or 'draftline')
  local marks = vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })
  for _, mark in ipairs(marks) do
    local text = {}
    local virtual = { mark[4].virt_text or {} }
    vim.list_extend(virtual, mark[4].virt_lines or {})
    for _, line in ipairs(virtual) do
      local parts = ''
      for _, chunk in ipairs(line) do
        local hint = chunk[2] == 'DraftlineHint' or chunk[2] == 'ComplHintMore'
        parts = parts .. (hint and '' or chunk[1])
      end
      text[#text + 1] = parts
    end
    if mark[4].virt_text or mark[4].virt_lines then
      return table.concat(text, '\n'), mark[2], mark[3]
    end
  end
end
"""


def binaries() -> list[str]:
    """The Neovims to test with: those that DRAFTLINE_NVIM names (separated as PATH is), else `nvim`."""
    named = [name for name in os.environ.get("DRAFTLINE_NVIM", "").split(os.pathsep) if name]
    found = [shutil.which(name) for name in named or ["nvim"]]
    missing = [name for name, path in zip(named, found, strict=False) if path is None]
    if missing:
        raise FileNotFoundError(f"DRAFTLINE_NVIM names {', '.join(missing)}, which cannot be run")
    return [path for path in found if path is not None]


def version(binary: str) -> str:
    """As ``0.12.4``; the binary itself if it does not tell."""
    words = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split()
    return words[1].removeprefix("v") if len(words) > 1 else binary


def lua_list(words: Iterable[str]) -> str:
    """A list of strings."""
    return "{ " + ", ".join(f"[[{word}]]" for word in words) + " }"


class Talk:
    """Questions in Lua to a running Neovim."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._answers: Any = None

    def connect(self, ended: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until it listens; ``ended`` says that it never will."""
        end = time.monotonic() + seconds
        while True:
            attempt = socket.socket(socket.AF_UNIX)
            try:
                attempt.connect(self._address)
            except OSError:
                attempt.close()
                if ended() or time.monotonic() > end:
                    raise RuntimeError("Neovim has ended, or its init.lua is wrong") from None
                time.sleep(0.005)
                continue
            attempt.settimeout(30)
            self._socket, self._answers = attempt, attempt.makefile("rb")
            return

    def run(self, code: str) -> Any:
        """The value of Lua code that ends with ``return``."""
        assert self._socket is not None
        self._socket.sendall(json.dumps(code).encode() + b"\n")
        line = self._answers.readline()
        if not line:
            raise RuntimeError("Neovim has ended")
        value, *problem = json.loads(line)
        if problem:
            raise RuntimeError(problem[0])
        return value

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression."""
        return self.run(f"return {expression}")

    def until(self, expression: str, wanted: Any = ..., seconds: float = 20) -> Any:
        """Wait until an expression is ``wanted``, or anything but nil and false; its value."""
        end = time.monotonic() + seconds
        value: Any = None
        while time.monotonic() < end:
            value = self.lua(expression)
            if value == wanted if wanted is not ... else value not in (None, False):
                return value
            time.sleep(0.01)
        raise AssertionError(f"{expression} stayed {value!r}; messages: {self.lua('_G.messages')}")

    @property
    def text(self) -> str:
        """The buffer."""
        return "\n".join(self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, false)"))

    def ghost(self, wanted: Any = ..., namespace: str = "draftline", seconds: float = 20) -> Any:
        """Wait for this text behind the cursor (any, if left out; None for none)."""
        return self.until(f"(_G.ghost('{namespace}'))", wanted, seconds)

    def keys(self, keys: str) -> None:
        """Type, in Neovim's notation of keys."""
        self.run(f"vim.api.nvim_input({json.dumps(keys, ensure_ascii=False)})")

    def close(self) -> None:
        """End Neovim, and with it its server."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """Ask nothing any more."""
        if self._socket is not None:
            self._answers.close()
            self._socket.close()


def prepared(
    directory: Path, address: str, init: str, env: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a Neovim that reads nothing of the user's and listens at ``address``."""
    start = f"vim.opt.runtimepath:prepend([[{PLUGIN}]])\n{EYES}{LISTEN.replace('ADDRESS', address)}{init}"
    (directory / "init.lua").write_text(start, encoding="utf-8")
    homes = {
        f"XDG_{name}_HOME": str(directory / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    # Servers of this checkout, whether it is installed or not.
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    own = {"DRAFTLINE_HOME": str(directory / "home"), "PYTHONPATH": path}
    return ["--clean", "-u", str(directory / "init.lua")], {**os.environ, **homes, **own, **env}


class Neovim(Talk):
    """One process without a screen. ``directory`` holds its files."""

    def __init__(
        self, binary: str, directory: Path, init: str, files: tuple[Path, ...], env: Mapping[str, str]
    ) -> None:
        # A socket's path must be short.
        self._sockets = tempfile.TemporaryDirectory(prefix="nvim-")
        super().__init__(os.path.join(self._sockets.name, "s"))
        arguments, environment = prepared(directory, self._address, init, env)
        errors = directory / "stderr"
        with errors.open("wb") as log:
            self._process = subprocess.Popen(
                [binary, "--headless", *arguments, *map(str, files)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            self.connect(lambda: self._process.poll() is not None)
        except RuntimeError as error:
            self._process.kill()
            self._process.wait()
            raise RuntimeError(f"{error}: {errors.read_text(errors='replace')}") from None

    def close(self) -> None:
        """End it, and with it its server."""
        if self._process.poll() is None:
            with contextlib.suppress(RuntimeError, OSError):
                self.run("vim.cmd('qall!')")
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.hang_up()
        self._sockets.cleanup()
