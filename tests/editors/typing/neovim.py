"""Typing into Neovim in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.editors.neovim import lua_list, version
from tests.editors.neovim_terminal import TerminalNeovim
from tests.editors.typing.plan import Plan
from tests.editors.typing.result import Result
from tests.editors.typing.terminal import HEIGHT, cores, in_words, pinned, type_as_planned

_WITNESS = Path(__file__).with_name("witness.lua")
# What is typed is all there shall be: no indentation by rules.
_INIT = """
vim.cmd('filetype indent off')
vim.o.autoindent = false
vim.api.nvim_create_autocmd('FileType', { command = 'setlocal formatoptions= indentexpr= nocindent' })
require('draftline').setup({ cmd = COMMAND })
_G.witness = dofile([[WITNESS]])
"""


def type_into(
    binary: str,
    plan: Plan,
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
    command = pinned(server, split[1]) if split else list(server)
    init = _INIT.replace("COMMAND", lua_list(command)).replace("WITNESS", str(_WITNESS))
    editor = TerminalNeovim(
        binary, directory, init, (file,), env, cpus=split[0] if split else None, height=HEIGHT
    )
    try:
        editor.until("require('draftline').status_info().kind", "ready", seconds)
        editor.run("_G.witness.watch()")
        above = plan.above.split("\n")
        editor.run(f"vim.api.nvim_input('{len(above)}GA')")
        at_end = (len(above) - 1, len(above[-1]))
        editor.terminal.until(lambda screen: (screen.y, screen.x) == at_end and "INSERT" in screen.text)
        milliseconds = type_as_planned(editor.terminal, plan)
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
            cores=in_words(split),
            wanted=plan.above + plan.typed,
            buffer=editor.text,
            per_second=plan.per_second,
            milliseconds=milliseconds,
            requests=seen["requests"],
            suggestions=seen["suggestions"],
            painted=seen["painted"],
            stale=tuple(seen["stale"]),
            messages=tuple(text.strip() for text in [*said, *seen["trouble"]] if text.strip()),
        )
    finally:
        editor.close()
