"""The packaged extension in VS Code, with the real model behind it and a record of what that answers."""

from __future__ import annotations

import contextlib
import functools
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.editors.vscode import EXTENSION, ROOT, VSCode
from tests.editors.vscode_page import Page

USER = {
    "draftline.statistics": False,
    "workbench.activityBar.location": "hidden",
    "breadcrumbs.enabled": False,
    "editor.minimap.enabled": False,
    "window.menuBarVisibility": "hidden",
}


@dataclass(frozen=True)
class Session:
    """A window with one file open, and the server ready.

    Attributes:
        answers: what recorded_server.py writes.
    """

    code: VSCode
    page: Page
    file: Path
    answers: Path


@functools.cache
def package() -> Path:
    """Make the .vsix as a user would, once in this process."""
    subprocess.run(["npm", "run", "--silent", "package"], cwd=EXTENSION, check=True, capture_output=True)
    return EXTENSION / "draftline.vsix"


@contextlib.contextmanager
def session(
    home: Path,
    vsix: Path,
    text: str,
    name: str = "shop.py",
    server: Sequence[str] = (sys.executable, "-m", "lsp_server"),
    **env: str,
) -> Iterator[Session]:
    """Install ``vsix`` into a new VS Code and open a file with ``text``, in a folder below ``home``.

    Args:
        server: the program that the extension starts.
        env: variables for VS Code's server and what it starts.
    """
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    file = workspace / name
    file.write_text(text, encoding="utf-8")
    answers = home / "answers.jsonl"
    program = home / "draftline"
    recorded = [sys.executable, str(ROOT / "tests" / "editors" / "recorded_server.py"), str(answers)]
    command = [*recorded, *server]
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.join(command)} "$@"\n')
    program.chmod(0o755)
    code = VSCode(home, user=USER, machine={"draftline.path": str(program)}, **env)
    with contextlib.ExitStack() as stack:
        code.install(vsix)
        stack.callback(code.close)
        code.start()
        page = Page()
        stack.callback(page.close)
        page.open(code.page(workspace, [["openFile", code.remote(file)]]))
        page.until_icon("sparkle")
        yield Session(code, page, file, answers)
