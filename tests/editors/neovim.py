"""A real Neovim without a screen, driven by keys and asked by Lua expressions."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "editors" / "neovim"


def binaries() -> list[str]:
    """The Neovims to test with: those that DRAFTLINE_NVIM names (separated as PATH is), else `nvim`."""
    named = [name for name in os.environ.get("DRAFTLINE_NVIM", "").split(os.pathsep) if name]
    found = [shutil.which(name) for name in named or ["nvim"]]
    missing = [name for name, path in zip(named, found, strict=False) if path is None]
    if missing:
        raise FileNotFoundError(f"DRAFTLINE_NVIM names {', '.join(missing)}, which cannot be run")
    return [path for path in found if path is not None]


class Neovim:
    """One process. ``directory`` holds its files; nothing of the user's is read."""

    def __init__(
        self, binary: str, directory: Path, init: str, files: tuple[Path, ...], env: Mapping[str, str]
    ) -> None:
        self._binary = binary
        # A socket's path must be short.
        self._sockets = tempfile.TemporaryDirectory(prefix="nvim-")
        self._address = os.path.join(self._sockets.name, "s")
        (directory / "init.lua").write_text(
            f"vim.opt.runtimepath:prepend([[{PLUGIN}]])\n"
            "vim.o.swapfile = false\n"
            # Messages are kept for the tests, and never wait for a key.
            "_G.messages = {}\n"
            "vim.notify = function(text) table.insert(_G.messages, text) end\n"
            "function _G.encoded(value)\n"
            "  return vim.json.encode({ value == nil and vim.NIL or value })\n"
            "end\n"
            "function _G.ghost(name)\n"
            "  local id = vim.api.nvim_create_namespace(name or 'draftline')\n"
            "  local marks = vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })\n"
            "  for _, mark in ipairs(marks) do\n"
            "    local text = {}\n"
            "    local virtual = { mark[4].virt_text or {} }\n"
            "    vim.list_extend(virtual, mark[4].virt_lines or {})\n"
            "    for _, line in ipairs(virtual) do\n"
            "      local parts = ''\n"
            "      for _, chunk in ipairs(line) do\n"
            "        local hint = chunk[2] == 'DraftlineHint' or chunk[2] == 'ComplHintMore'\n"
            "        parts = parts .. (hint and '' or chunk[1])\n"
            "      end\n"
            "      text[#text + 1] = parts\n"
            "    end\n"
            "    if mark[4].virt_text or mark[4].virt_lines then\n"
            "      return table.concat(text, '\\n'), mark[2], mark[3]\n"
            "    end\n"
            "  end\n"
            "end\n" + init,
            encoding="utf-8",
        )
        environment = {
            **os.environ,
            **{
                f"XDG_{name}_HOME": str(directory / name.lower())
                for name in ("CONFIG", "DATA", "STATE", "CACHE")
            },
            "DRAFTLINE_HOME": str(directory / "home"),
            **env,
        }
        command = [binary, "--headless", "--clean", "-u", str(directory / "init.lua")]
        self._process = subprocess.Popen(
            [*command, "--listen", self._address, *map(str, files)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.until("1")

    def _remote(self, option: str, argument: str) -> str:
        done = subprocess.run(
            [self._binary, "--clean", "--headless", "--server", self._address, option, argument],
            capture_output=True,
            text=True,
            timeout=30,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        # Some versions print to stderr where there is no terminal.
        return done.stdout or done.stderr

    def keys(self, keys: str) -> None:
        """Type, in Neovim's notation of keys."""
        self._remote("--remote-send", keys)

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression."""
        quoted = f"_G.encoded({expression})".replace("'", "''")
        return json.loads(self._remote("--remote-expr", f"luaeval('{quoted}')"))[0]

    def run(self, code: str) -> Any:
        """The value of Lua code that ends with ``return``."""
        return self.lua(f"(function() {code} end)()")

    def until(self, expression: str, wanted: Any = ..., seconds: float = 20) -> Any:
        """Wait until an expression is ``wanted``, or anything but nil and false; its value."""
        end = time.monotonic() + seconds
        value: Any = None
        while time.monotonic() < end:
            try:
                value = self.lua(expression)
            except RuntimeError:
                if self._process.poll() is not None:
                    raise
                value = None
            if value == wanted if wanted is not ... else value not in (None, False):
                return value
            time.sleep(0.02)
        raise AssertionError(f"{expression} stayed {value!r}; messages: {self.lua('_G.messages')}")

    @property
    def text(self) -> str:
        """The buffer."""
        return "\n".join(self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, false)"))

    def ghost(self, wanted: Any = ..., namespace: str = "draftline") -> Any:
        """Wait for this text behind the cursor (any, if left out; None for none)."""
        return self.until(f"(_G.ghost('{namespace}'))", wanted)

    def close(self) -> None:
        """End it, and with it its server."""
        if self._process.poll() is None:
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                self._remote("--remote-expr", "execute('qall!')")
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._sockets.cleanup()
