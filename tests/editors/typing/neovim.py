"""Typing into Neovim in a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.editors.neovim_terminal import TerminalNeovim
from tests.editors.terminal import Screen
from tests.editors.typing.plan import Plan
from tests.editors.typing.result import Result

_WITNESS = Path(__file__).with_name("witness.lua")
# What is typed is all there shall be: no indentation by rules.
_INIT = """
vim.cmd('filetype indent off')
vim.o.autoindent = false
vim.api.nvim_create_autocmd('FileType', { command = 'setlocal formatoptions= indentexpr= nocindent' })
require('draftline').setup({ cmd = COMMAND })
_G.witness = dofile([[WITNESS]])
"""


def version(binary: str) -> str:
    """As ``0.12.4``."""
    words = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return words[1].removeprefix("v")


def _pinned(command: Sequence[str], cpus: set[int]) -> list[str]:
    code = f"import os, sys; os.sched_setaffinity(0, {cpus}); os.execvp(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code, *command]


def cores() -> tuple[set[int], set[int]] | None:
    """One core for the editor and the others for the server; None if there are not two."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    all_cores = sorted(os.sched_getaffinity(0))
    return ({all_cores[0]}, set(all_cores[1:])) if len(all_cores) > 1 else None


def _prefix_on_screen(screen: Screen, top: list[str], typed: str, shown: int) -> int:
    """How many typed characters the screen shows, at least ``shown``; all of it must be right."""
    for count in range(len(typed), shown, -1):
        lines = ("\n".join(top) + typed[:count]).split("\n")
        if (screen.y, screen.x) != (len(lines) - 1, len(lines[-1])):
            continue
        last = screen.lines[screen.y].ljust(screen.x)[: screen.x]
        if last == lines[-1] and list(screen.lines[: screen.y]) == [line.rstrip() for line in lines[:-1]]:
            return count
    return shown


def type_into(
    binary: str,
    plan: Plan,
    per_second: float,
    server: Sequence[str],
    server_name: str,
    directory: Path,
    env: Mapping[str, str],
    seconds: float = 60,
) -> Result:
    """Type as planned, in ``directory``. The server may take ``seconds`` until it is ready.

    Raises:
        AssertionError: a character is not on screen ten seconds after its key.
    """
    file = directory / "main.py"
    file.write_text(plan.above + "\n", encoding="utf-8")
    split = cores()
    command = _pinned(server, split[1]) if split else list(server)
    listed = "{ " + ", ".join(f"[[{word}]]" for word in command) + " }"
    init = _INIT.replace("COMMAND", listed).replace("WITNESS", str(_WITNESS))
    editor = TerminalNeovim(
        binary, directory, init, (file,), env, cpus=split[0] if split else None, height=40
    )
    try:
        editor.until("require('draftline').status_info().kind", "ready", seconds)
        editor.run("_G.witness.watch()")
        top = plan.above.split("\n")
        editor.run(f"vim.api.nvim_input('{len(top)}GA')")
        terminal = editor.terminal
        terminal.until(lambda screen: (screen.y, screen.x) == (len(top) - 1, 0) and "INSERT" in screen.text)
        sent: list[float] = []
        taken: list[float] = []
        due = time.perf_counter()
        while len(taken) < len(plan.typed):
            now = time.perf_counter()
            if len(sent) < len(plan.typed) and now >= due:
                terminal.type(plan.typed[len(sent)])
                sent.append(now)
                # Keys come when they are due, whether the one before is on screen or not.
                due += plan.waits[len(sent) - 1]
            wait = due - time.perf_counter() if len(sent) < len(plan.typed) else 1.0
            if not terminal.wait(max(0.0, min(wait, 1.0))) or len(sent) == len(taken):
                if len(sent) > len(taken) and now - sent[len(taken)] > 10:
                    missing = plan.typed[len(taken)]
                    raise AssertionError(f"{missing!r} is not on screen:\n{terminal.screen().text}")
                continue
            screen = terminal.screen()
            count = _prefix_on_screen(screen, top, plan.typed[: len(sent)], len(taken))
            now = time.perf_counter()
            taken += [now - at for at in sent[len(taken) : count]]
        editor.until("require('draftline.suggest').idle()")
        said = [
            *editor.lua("_G.messages"),
            editor.lua("vim.v.errmsg"),
            editor.lua("vim.fn.execute('messages')"),
        ]
        names = ("requests", "suggestions", "painted", "stale", "trouble")
        seen = {name: editor.lua(f"_G.witness.{name}") for name in names}
        return Result(
            editor=f"Neovim {version(binary)} in tmux",
            server=server_name,
            cores=f"editor on core {min(split[0])}, server on {len(split[1])} others"
            if split
            else "all on one core",
            wanted=plan.above + plan.typed,
            buffer=editor.text,
            per_second=per_second,
            milliseconds=tuple(1000 * each for each in taken),
            requests=seen["requests"],
            suggestions=seen["suggestions"],
            painted=seen["painted"],
            stale=tuple(seen["stale"]),
            messages=tuple(text.strip() for text in [*said, *seen["trouble"]] if text.strip()),
        )
    finally:
        editor.close()
