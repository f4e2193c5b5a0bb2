"""The extension in a real VS Code: its web server, a headless Chromium, tests inside the extension host.

Variables name the programs: DRAFTLINE_VSCODE_SERVER is VS Code's ``out/server-main.js`` (of code-server or a
server build), DRAFTLINE_VSCODE_NODE the Node it runs on (else ``node``), DRAFTLINE_CHROMIUM the browser
(else ``chromium``). The extension's own packages must be there: ``npm ci`` in editors/vscode.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
SERVER = os.environ.get("DRAFTLINE_VSCODE_SERVER", "")
NODE = shutil.which(os.environ.get("DRAFTLINE_VSCODE_NODE", "node"))
CHROMIUM = shutil.which(os.environ.get("DRAFTLINE_CHROMIUM", "chromium"))
TEXT = "def total(prices):\n    s = 0\n    for p in prices:\n        s = s + p\n    return s\n"
USER_SETTINGS = {
    "editor.inlineSuggest.enabled": True,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "workbench.startupEditor": "none",
    "chat.disableAIFeatures": True,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": False,
}
QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
SECONDS = 150

pytestmark = [
    pytest.mark.editor,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not SERVER, reason="no VS Code: DRAFTLINE_VSCODE_SERVER does not name server-main.js"),
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: put chromium on the PATH or name it"),
    pytest.mark.skipif(NODE is None, reason="no Node: put node on the PATH or name it"),
    pytest.mark.skipif(not (EXTENSION / "node_modules").is_dir(), reason="run `npm ci` in editors/vscode"),
]

Scenario = Callable[..., str]


@pytest.fixture(scope="module")
def built() -> None:
    """The extension and its tests, bundled."""
    node = shutil.which("node") or NODE
    assert node is not None
    subprocess.run([node, "scripts/build.mjs", "--tests"], cwd=EXTENSION, check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "VS Code's server ended"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/version", timeout=5).read()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("VS Code's server does not answer")


@pytest.fixture
def play(built: None, tmp_path: Path) -> Scenario:
    """Plays a scenario of test/host/index.ts; the result is "passed", or what went wrong."""

    def run(scenario: str, *, found: bool = True, **fake: str) -> str:
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        (workspace / "main.py").write_text(TEXT, encoding="utf-8")
        program = tmp_path / "draftline"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/e2e/fake_server.py" "$@"\n')
        program.chmod(0o755)
        result = tmp_path / "result"
        plan = {"scenario": scenario, "result": str(result), "program": str(program)}
        (workspace / ".draftline-test.json").write_text(json.dumps(plan))
        # A window of a remote host takes settings of the machine's scope from that machine's own file.
        own = {"draftline.path": str(program)} if found else {}
        for kind, values in {"User": USER_SETTINGS, "Machine": own}.items():
            file = tmp_path / "data" / "data" / kind / "settings.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(values))
        port = _free_port()
        assert NODE is not None and CHROMIUM is not None
        env = {
            **os.environ,
            "DRAFTLINE_HOME": str(tmp_path / "home"),
            "PATH": "/usr/bin:/bin",
            **{f"FAKE_{name.upper()}": value for name, value in fake.items()},
        }
        server = [NODE, SERVER, "--host", "127.0.0.1", "--port", str(port), "--without-connection-token"]
        server += ["--accept-server-license-terms", "--telemetry-level", "off", "--disable-workspace-trust"]
        server += ["--disable-getting-started-override", "--server-data-dir", str(tmp_path / "data")]
        server += ["--extensions-dir", str(tmp_path / "extensions"), "--enable-smoke-test-driver"]
        remote = f"vscode-remote://127.0.0.1:{port}{EXTENSION}"
        payload = [
            ["extensionDevelopmentPath", remote],
            ["extensionTestsPath", f"{remote}/out/host/index.js"],
        ]
        query = urllib.parse.urlencode({"folder": str(workspace), "payload": json.dumps(payload)})
        log = (tmp_path / "server.log").open("wb")
        browser: subprocess.Popen[bytes] | None = None
        # Both start processes of their own, so each is the leader of a group that is ended as a whole.
        vscode = subprocess.Popen(server, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            _answers(port, vscode)
            profile = f"--user-data-dir={tmp_path / 'profile'}"
            page = [
                CHROMIUM,
                *QUIET,
                profile,
                "--remote-debugging-port=0",
                f"http://127.0.0.1:{port}/?{query}",
            ]
            browser = subprocess.Popen(page, stdout=log, stderr=log, start_new_session=True)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and not result.exists():
                assert vscode.poll() is None and browser.poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.2)
            if not result.exists():
                return f"no result: {(tmp_path / 'server.log').read_text()[-3000:]}"
            return result.read_text()
        finally:
            for process in (browser, vscode):
                if process is not None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            log.close()

    return run


def test_suggestions_switches_crash_and_settings(play: Scenario) -> None:
    assert play("session", answer="compute(s)") == "passed"


def test_a_missing_server_is_told(play: Scenario) -> None:
    assert play("missing", found=False) == "passed"


def test_a_model_that_is_missing_offers_the_download(play: Scenario) -> None:
    assert play("failed", fail="1") == "passed"


@pytest.mark.skipif(
    importlib.util.find_spec("lsp_server.inline_edit") is None, reason="this server has no inline edit"
)
def test_an_edit_is_shown_taken_and_undone(play: Scenario) -> None:
    assert play("edit", answer=TEXT.replace("s = s + p", "s += p") + "```\nDone.") == "passed"
