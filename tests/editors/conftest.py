"""Editors for the tests of this directory."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_ROOT = str(Path(__file__).parents[2])
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from tests.editors.neovim import ROOT, Neovim, Talk, binaries, lua_list, version  # noqa: E402
from tests.editors.neovim_terminal import TerminalNeovim  # noqa: E402
from tests.editors.vscode_session import package  # noqa: E402

StartNeovim = Callable[..., Any]

_FOUND = binaries()
FAKE = (sys.executable, str(ROOT / "tests" / "e2e" / "fake_server.py"), "lsp")
SCRIPTED = (sys.executable, str(ROOT / "tests" / "editors" / "scripted_server.py"))


@pytest.fixture(params=_FOUND or [None], ids=lambda binary: version(binary) if binary else "none")
def nvim_binary(request: pytest.FixtureRequest) -> str:
    """Each Neovim in turn."""
    if request.param is None:
        pytest.skip("there is no Neovim: put `nvim` on the PATH, or name it in DRAFTLINE_NVIM")
    return str(request.param)


@pytest.fixture
def neovim(nvim_binary: str, tmp_path: Path) -> Iterator[StartNeovim]:
    """Starts Neovims with the plugin: ``neovim("text", server=FAKE, options="…", FAKE_ANSWER="…")``.

    They are ``Neovim``, or with ``screen=True`` ``TerminalNeovim``.
    """
    running: list[Talk] = []

    def start(
        text: str = "",
        *,
        server: tuple[str, ...] | None = FAKE,
        options: str = "",
        before: str = "",
        name: str = "main.py",
        ready: bool = True,
        screen: bool = False,
        **env: str,
    ) -> Talk:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        cmd = "" if server is None else f"cmd = {lua_list(server)}, "
        init = f"{before}\nrequire('draftline').setup({{ {cmd}{options} }})\n"
        kind = TerminalNeovim if screen else Neovim
        editor = kind(nvim_binary, tmp_path, init, (file,), env)
        running.append(editor)
        if ready:
            editor.until("require('draftline').status_info().kind", "ready", 60)
        return editor

    yield start
    for editor in running:
        editor.close()


@pytest.fixture(scope="session")
def vsix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension for VS Code as a user packages it."""
    return Path(shutil.copy(package(), tmp_path_factory.mktemp("vsix")))
