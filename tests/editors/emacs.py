"""A real Emacs in a terminal of tmux's, driven by keys and asked by Lisp expressions."""

from __future__ import annotations

import base64
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

from tests.editors.terminal import TMUX, Terminal

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "editors" / "emacs" / "draftline.el"

# Compiling to machine code in the background needs a linker of the same origin as Emacs.
NO_JIT = "(setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil)"


def found() -> tuple[str, str]:
    """The Emacs to test with, that of DRAFTLINE_EMACS or the ``PATH``; else "" and why there is none."""
    named = os.environ.get("DRAFTLINE_EMACS", "")
    emacs = shutil.which(named or "emacs")
    if emacs is None:
        if named:
            raise FileNotFoundError(f"DRAFTLINE_EMACS names {named}, which cannot be run")
        return "", "there is no Emacs: put `emacs` on the PATH, or name it in DRAFTLINE_EMACS"
    if TMUX is None:
        return "", "there is no tmux, which gives Emacs its terminal"
    if shutil.which(client_of(emacs)) is None:
        return "", f"there is no {client_of(emacs)}"
    ask = f'(progn {NO_JIT} (princ (if (locate-library "lsp-inline-completion") "found" "")))'
    said = subprocess.run([emacs, "-Q", "--batch", "--eval", ask], capture_output=True, text=True, timeout=60)
    if said.stdout != "found":
        return "", f"{emacs} has no lsp-mode 10 on its load path"
    return emacs, ""


def client_of(emacs: str) -> str:
    """The emacsclient that lies beside an Emacs."""
    return str(Path(emacs).with_name("emacsclient"))


class Emacs:
    """One process. ``directory`` holds its files; nothing of the user's is read. ``terminal`` shows it."""

    def __init__(
        self,
        binary: str,
        directory: Path,
        before: str,
        after: str,
        file: Path,
        env: Mapping[str, str],
        *,
        cpus: set[int] | None = None,
        height: int = 24,
    ) -> None:
        self._client = client_of(binary)
        # A socket's path must be short.
        self._sockets = tempfile.TemporaryDirectory(prefix="emacs-")
        init = directory / "init.el"
        init.write_text(
            f"""
(require 'server)
(setq server-socket-dir {lisp(self._sockets.name)} server-name "s")
(setq user-emacs-directory {lisp(str(directory / "emacs.d") + "/")})
{NO_JIT}
(setq make-backup-files nil auto-save-default nil create-lockfiles nil inhibit-startup-screen t)
(setq lsp-session-file (expand-file-name "session" user-emacs-directory) lsp-auto-guess-root t
      lsp-guess-root-without-session t lsp-enable-snippet nil lsp-enable-suggest-server-download nil
      lsp-headerline-breadcrumb-enable nil lsp-client-packages nil lsp-enable-file-watchers nil)
(defun shown ()
  "The suggestion on screen."
  (when (overlayp lsp-inline-completion--overlay)
    (substring-no-properties
     (concat (overlay-get lsp-inline-completion--overlay 'display)
             (overlay-get lsp-inline-completion--overlay 'after-string)))))
{before}
;; What a package manager does.
(load "lsp-mode-autoloads" nil t)
(load {lisp(str(CONFIGURATION))} nil t)
{after}
(server-start)
(find-file {lisp(str(file))})
(lsp)
""",
            encoding="utf-8",
        )
        environment = {
            **os.environ,
            "DRAFTLINE_HOME": str(directory / "home"),
            "LC_ALL": "C.UTF-8",
            "HOME": str(directory),
            **env,
        }
        command = [binary, "-nw", "-Q", "-l", str(init)]
        self.terminal = Terminal(command, environment, cpus=cpus, height=height)
        self.keys, self.type = self.terminal.keys, self.terminal.type
        self.until("(and (draftline--workspace) t)", True)

    def screen(self) -> str:
        """What the terminal shows."""
        return self.terminal.screen().text

    def lisp(self, expression: str) -> Any:
        """The value of an expression in the buffer of the window."""
        code = (
            "(with-current-buffer (window-buffer (selected-window))"
            f" (base64-encode-string (encode-coding-string (json-serialize (vector {expression})"
            " :null-object nil :false-object :json-false) 'utf-8) t))"
        )
        socket = os.path.join(self._sockets.name, "s")
        done = subprocess.run(
            [self._client, "-s", socket, "--eval", code], capture_output=True, text=True, timeout=30
        )
        if done.returncode:
            raise RuntimeError(f"{done.stderr.strip()} {done.stdout.strip()}")
        return json.loads(base64.b64decode(done.stdout.strip().strip('"')))[0]

    def run(self, expression: str) -> None:
        """Evaluate an expression for what it does."""
        self.lisp(f"(progn {expression} t)")

    def until(self, expression: str, wanted: Any = ..., seconds: float = 30) -> Any:
        """Wait until an expression is ``wanted``, or anything but nil; its value."""
        end = time.monotonic() + seconds
        value: Any = None
        while time.monotonic() < end:
            try:
                value = self.lisp(expression)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                value = f"fault: {error}"
            else:
                if value == wanted if wanted is not ... else value is not None:
                    return value
            time.sleep(0.05)
        with contextlib.suppress(RuntimeError):
            raise AssertionError(f"{expression} stayed {value!r}; screen:\n{self.screen()}")
        raise AssertionError(f"{expression} stayed {value!r}; Emacs has ended")

    @property
    def text(self) -> str:
        """The buffer."""
        return str(self.lisp("(buffer-substring-no-properties (point-min) (point-max))"))

    def close(self) -> None:
        """End it, and with it its server."""
        with contextlib.suppress(RuntimeError, ValueError, subprocess.SubprocessError):
            self.lisp("(kill-emacs)")
        self.terminal.close()
        self._sockets.cleanup()


def lisp(text: str) -> str:
    """A string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
