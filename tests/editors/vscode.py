"""A real VS Code for tests: its web server, and what it needs of this machine.

Variables name the programs: DRAFTLINE_VSCODE_SERVER is VS Code's ``out/server-main.js`` (of code-server or a
server build), DRAFTLINE_VSCODE_NODE the Node it runs on (else ``node``), DRAFTLINE_CHROMIUM the browser
(else ``chromium``). The extension's own packages must be there: ``npm ci`` in editors/vscode.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
SERVER = os.environ.get("DRAFTLINE_VSCODE_SERVER", "")
NODE = shutil.which(os.environ.get("DRAFTLINE_VSCODE_NODE", "node"))
CHROMIUM = shutil.which(os.environ.get("DRAFTLINE_CHROMIUM", "chromium"))
USER_SETTINGS: dict[str, Any] = {
    "editor.inlineSuggest.enabled": True,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": True,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": False,
}
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def missing() -> str:
    """What is not there of what these tests need, "" if all is."""
    if not SERVER:
        return "no VS Code: DRAFTLINE_VSCODE_SERVER does not name server-main.js"
    if CHROMIUM is None:
        return "no browser: put chromium on the PATH or name it in DRAFTLINE_CHROMIUM"
    if NODE is None:
        return "no Node: put node on the PATH or name it in DRAFTLINE_VSCODE_NODE"
    if not (EXTENSION / "node_modules").is_dir():
        return "run `npm ci` in editors/vscode"
    return ""


def version() -> str:
    """As ``1.100.3``."""
    manifest = Path(SERVER).parents[1] / "package.json"
    return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])


class VSCode:
    """VS Code's server with data, extensions and settings of its own below ``home``.

    Args:
        user: settings beside ``USER_SETTINGS``.
        machine: settings of the machine's scope; a window of a remote host takes those from that
            machine's own file.
        dialogs: show modal dialogs, which an editor that knows it is tested refuses. Tests inside the
            extension host need one that knows.
        env: variables for the server and so for the extension.
    """

    def __init__(
        self,
        home: Path,
        *,
        user: dict[str, Any] | None = None,
        machine: dict[str, Any] | None = None,
        dialogs: bool = False,
        **env: str,
    ) -> None:
        self.home = home
        self._dialogs = dialogs
        self._data = home / "data"
        self._log = home / "server.log"
        # The server would ask the user's login shell for variables, were it not started from a shell.
        self._env = {**os.environ, "VSCODE_CLI": "1", "PATH": "/usr/bin:/bin", **env}
        for kind, values in {"User": {**USER_SETTINGS, **(user or {})}, "Machine": machine or {}}.items():
            file = self._data / "data" / kind / "settings.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(values))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def install(self, vsix: Path) -> None:
        """Install a packaged extension."""
        command = [*self._command(), "--install-extension", str(vsix)]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        command = [
            *self._command(),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--without-connection-token",
        ]
        command += ["--disable-workspace-trust", "--disable-getting-started-override"]
        if not self._dialogs:
            command += ["--enable-smoke-test-driver"]
        with self._log.open("wb") as log:
            # It starts processes of its own, so it leads a group that is ended as a whole.
            self._process = subprocess.Popen(
                command, env=self._env, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + 60
        while True:
            assert self.running, f"VS Code's server ended: {self.log()}"
            assert time.monotonic() < end, "VS Code's server does not answer"
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/version", timeout=5).read()
                return
            except OSError:
                time.sleep(0.2)

    @property
    def pid(self) -> int:
        """The process that leads all that the server started."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server has not ended."""
        return self._process is not None and self._process.poll() is None

    def remote(self, path: Path) -> str:
        """The address of a file for ``payload``."""
        return f"vscode-remote://127.0.0.1:{self.port}{path}"

    def page(self, workspace: Path, payload: list[list[str]]) -> str:
        """The address of a window."""
        query = urllib.parse.urlencode({"folder": str(workspace), "payload": json.dumps(payload)})
        return f"http://127.0.0.1:{self.port}/?{query}"

    def log(self) -> str:
        """The last the server said."""
        return self._log.read_text(errors="replace")[-3000:]

    def extension_log(self) -> str:
        """The extension's output channel, of all windows so far."""
        files = sorted(self._data.glob("data/logs/*/exthost*/**/Draftline.log"))
        return "\n".join(file.read_text(encoding="utf-8") for file in files)

    def close(self) -> None:
        """End the server and everything it started."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _command(self) -> list[str]:
        assert NODE is not None
        command = [NODE, SERVER, "--accept-server-license-terms", "--telemetry-level", "off"]
        command += ["--server-data-dir", str(self._data), "--extensions-dir", str(self.home / "extensions")]
        return command
