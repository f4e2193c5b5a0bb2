"""The extension in a real VS Code: its web server, a headless Chromium, tests inside the extension host."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.stand_in_uv import PROGRAM
from tests.editors.vscode import CHROMIUM, EXTENSION, NODE, QUIET, ROOT, VSCode, missing

TEXT = "def total(prices):\n    s = 0\n    for p in prices:\n        s = s + p\n    return s\n"
SECONDS = 150

pytestmark = [
    pytest.mark.editor,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing()), reason=missing() or "all is there"),
]

Scenario = Callable[..., str]


@pytest.fixture(scope="module")
def built() -> None:
    """The extension and its tests, bundled."""
    node = shutil.which("node") or NODE
    assert node is not None
    subprocess.run([node, "scripts/build.mjs", "--tests"], cwd=EXTENSION, check=True)


@pytest.fixture
def play(built: None, tmp_path: Path) -> Scenario:
    """Plays a scenario of test/host/index.ts; the result is "passed", or what went wrong."""

    def run(scenario: str, *, found: bool = True, fetches: bool = False, gate: str = "", **fake: str) -> str:
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        (workspace / "main.py").write_text(TEXT, encoding="utf-8")
        program = tmp_path / "draftline"
        if fetches:
            program.write_text(PROGRAM.format(python=sys.executable, root=ROOT), encoding="utf-8")
        else:
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/e2e/fake_server.py" "$@"\n')
        program.chmod(0o755)
        result = tmp_path / "result"
        plan = {"scenario": scenario, "result": str(result), "program": str(program), "gate": gate}
        (workspace / ".draftline-test.json").write_text(json.dumps(plan))
        env = {"DRAFTLINE_HOME": str(tmp_path / "home")}
        env |= {f"FAKE_{name.upper()}": value for name, value in fake.items()}
        code = VSCode(tmp_path, machine={"draftline.path": str(program)} if found else {}, **env)
        browser: subprocess.Popen[bytes] | None = None
        try:
            code.start()
            payload = [
                ["extensionDevelopmentPath", code.remote(EXTENSION)],
                ["extensionTestsPath", code.remote(EXTENSION / "out" / "host" / "index.js")],
            ]
            assert CHROMIUM is not None
            page = [CHROMIUM, "--headless=new", *QUIET, f"--user-data-dir={tmp_path / 'profile'}"]
            page += ["--remote-debugging-port=0", code.page(workspace, payload)]
            quiet = subprocess.DEVNULL
            # It starts processes of its own, so it leads a group that is ended as a whole.
            browser = subprocess.Popen(page, stdout=quiet, stderr=quiet, start_new_session=True)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and not result.exists():
                assert code.running and browser.poll() is None, code.log()
                time.sleep(0.2)
            return result.read_text() if result.exists() else f"no result: {code.log()}"
        finally:
            if browser is not None:
                os.killpg(browser.pid, signal.SIGKILL)
                browser.wait()
            code.close()

    return run


def test_suggestions_switches_crash_and_settings(play: Scenario) -> None:
    assert play("session", answer="compute(s)") == "passed"


def test_first_lines_grow_to_the_whole_suggestion(play: Scenario) -> None:
    assert (
        play("grows", answer="x = one(s)\n    y = two(s)\n    z = three(s)", step_seconds="0.04") == "passed"
    )


def test_what_was_asked_for_while_loading_comes_without_another_key(play: Scenario, tmp_path: Path) -> None:
    gate = str(tmp_path / "loaded")
    assert play("late", answer="compute(s)", load_until=gate, gate=gate) == "passed"


def test_a_missing_server_is_told(play: Scenario) -> None:
    assert play("missing", found=False) == "passed"


def test_a_model_that_is_missing_offers_the_download(play: Scenario) -> None:
    assert play("failed", fail="1") == "passed"


def test_the_model_is_downloaded_in_a_terminal(play: Scenario) -> None:
    assert play("download", fetches=True, answer="compute(s)") == "passed"


@pytest.mark.skipif(
    importlib.util.find_spec("lsp_server.inline_edit") is None, reason="this server has no inline edit"
)
def test_an_edit_is_shown_taken_and_undone(play: Scenario) -> None:
    assert play("edit", answer=TEXT.replace("s = s + p", "s += p") + "```\nDone.") == "passed"
