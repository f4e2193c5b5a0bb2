"""First use of the packaged extension in a real VS Code: no environment, Set Up, the walkthrough.

A stand-in makes the environment in the place of uv, so nothing needs a network. The extension's own tests,
which play what may go wrong, are run here too.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.vscode import EXTENSION, ROOT, VSCode, missing
from tests.editors.vscode_page import Page
from tests.editors.vscode_session import USER

pytestmark = [pytest.mark.editor, pytest.mark.timeout(400)]
needs_editor = pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")

ITEM = '.statusbar-item[id^="draftline.draftline"]'
TEXT = "def total(prices):\n    s = 0\n    return "
MODEL = "qwen2.5-coder-0.5b-instruct"
DIALOG = "() => document.querySelector('.monaco-dialog-box')?.innerText ?? ''"
# Sent to the element itself: notifications may lie above it.
PRESS = (
    "([within, text]) => [...document.querySelectorAll(within + ' .monaco-button')]"
    ".find(button => button.textContent === text).click()"
)


class FirstUse:
    """A window without an environment, and a uv on the PATH that makes one."""

    def __init__(self, home: Path, vsix: Path) -> None:
        self.record = home / "uv.jsonl"
        self.environment = home / "data/data/User/globalStorage/draftline.draftline/environment"
        self.uv = home / "bin" / "uv"
        self.uv.parent.mkdir()
        command = [sys.executable, str(Path(__file__).with_name("stand_in_uv.py")), str(self.record)]
        self.uv.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        self.uv.chmod(0o755)
        workspace = home / "workspace"
        workspace.mkdir()
        file = workspace / "main.py"
        file.write_text(TEXT, encoding="utf-8")
        self.code = VSCode(
            home,
            user=USER,
            machine={"draftline.installFrom": str(ROOT)},
            dialogs=True,
            PATH=f"{self.uv.parent}:/usr/bin:/bin",
            DRAFTLINE_HOME=str(home / "draftline"),
            FAKE_ANSWER="compute(s)",
        )
        self.page: Page | None = None
        try:
            self.code.install(vsix)
            self.code.start()
            self.page = Page()
            self.page.open(self.code.page(workspace, [["openFile", self.code.remote(file)]]))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self.page is not None:
            self.page.close()
        self.code.close()


@pytest.fixture
def first_use(vsix: Path, tmp_path: Path) -> Iterator[FirstUse]:
    window = FirstUse(tmp_path, vsix)
    yield window
    window.close()


@needs_editor
def test_set_up_and_the_walkthrough(first_use: FirstUse) -> None:
    assert first_use.page is not None
    _no_environment(first_use.page)
    _set_up(first_use, first_use.page)
    _model_fetched(first_use, first_use.page)
    _walkthrough(first_use.page)


def _status(page: Page, words: str) -> None:
    page.until(f"words => document.querySelector('{ITEM}')?.ariaLabel.includes(words)", words)


def _dialog(page: Page, words: str) -> str:
    page.until(f"words => ({DIALOG})().includes(words)", words)
    return str(page.evaluate(DIALOG))


def _no_environment(page: Page) -> None:
    page.until_icon("error")
    _status(page, "No Python environment with Draftline was found.")
    _status(page, "Click: set Draftline up")
    page.until("() => [...document.querySelectorAll('.notifications-toasts .monaco-button')].length > 0")
    assert page.notices() == ["Draftline: No Python environment with Draftline was found."]


def _set_up(first_use: FirstUse, page: Page) -> None:
    page.click(f"{ITEM} a")
    told = _dialog(page, "Set up Draftline")
    assert str(first_use.environment) in told and str(first_use.uv) in told and "about 3 GB" in told
    assert not first_use.record.exists(), "nothing is made unasked"
    page.evaluate(PRESS, [".monaco-dialog-box", "Make an Environment"])
    # The server of the new environment says it.
    _status(page, f"{MODEL} is not on this disk.")
    python = str(first_use.environment / "bin" / "python")
    calls = [json.loads(line) for line in first_use.record.read_text(encoding="utf-8").splitlines()]
    assert calls == [
        ["venv", "--python", ">=3.10", str(first_use.environment)],
        ["pip", "install", "--python", python, str(ROOT)],
    ]
    assert [file.name for file in first_use.environment.parent.iterdir()] == ["environment"]


def _model_fetched(first_use: FirstUse, page: Page) -> None:
    _status(page, "Click: fetch the model")
    subprocess.run([first_use.environment / "bin" / "draftline", "model", "fetch", MODEL], check=True)
    page.command("Draftline: Restart Server")
    page.until_icon("sparkle")


def _walkthrough(page: Page) -> None:
    page.press("Control+Backslash")  # splits the editor
    page.until("() => document.querySelectorAll('.editor-group-container .monaco-editor').length === 2")
    page.command("Welcome: Open Walkthrough...")
    page.until("() => document.querySelector('.quick-input-widget .quick-input-box input:focus')")
    page.type("Start with Draftline", per_second=200)
    row = ".quick-input-list .monaco-list-row.focused"
    page.until(f"() => document.querySelector('{row}')?.ariaLabel?.startsWith('Start with Draftline')")
    page.press("Enter")
    steps = '[data-step-id^="draftline.draftline#start#"]'
    page.until(f"() => document.querySelectorAll('{steps}').length === 4")

    _step(page, "environment", "Set up")
    _dialog(page, "Set up Draftline")
    page.evaluate(PRESS, [".monaco-dialog-box", "Cancel"])
    page.until(f"() => ({DIALOG})() === ''")
    _step(page, "model", "Download the model")
    _dialog(page, f"Download the model {MODEL}?")
    page.evaluate(PRESS, [".monaco-dialog-box", "Cancel"])
    page.until(f"() => ({DIALOG})() === ''")
    _step(page, "model", "Choose another")
    names = "() => [...document.querySelectorAll('.quick-input-list .label-name')].map(n => n.textContent)"
    page.until(f"name => ({names})().includes(name)", MODEL)
    page.press("Escape")
    _step(page, "write", "Ask for one now")
    page.until_ghost()
    assert page.look().drawn[-1] == "    return compute(s)"
    _step(page, "edit", "Edit the selection")
    page.until("() => document.querySelector('.quick-input-widget .quick-input-box input:focus')")
    title = "document.querySelector('.quick-input-title')?.textContent"
    page.until(f"() => {title}?.includes('edit the selection')")
    page.press("Escape")
    page.until("() => document.querySelectorAll('.codicon-getting-started-step-checked').length === 4")


def _step(page: Page, name: str, button: str) -> None:
    page.evaluate(PRESS, [f'[data-step-id="draftline.draftline#start#{name}"]', button])


@pytest.mark.skipif(
    shutil.which("npm") is None or not (EXTENSION / "node_modules").is_dir(),
    reason="there is no npm, or `npm ci` was not run in editors/vscode",
)
def test_the_tests_of_the_extension_itself() -> None:
    done = subprocess.run(["npm", "test"], cwd=EXTENSION, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
