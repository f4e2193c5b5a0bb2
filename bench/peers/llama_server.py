"""llama.cpp's server: a process of our own, or one that runs already at an address."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.peers.base import PeerFailed, Usage
from bench.peers.child import Child
from bench.peers.exchange import Exchange

# What ``--fim-qwen-1.5b-default`` and its sisters set, which llama.vim's README recommends. With more than
# this many tokens /infill cuts the prompt: it takes 3/4 of a batch before the cursor, 1/4 behind it.
BATCH = 1024
CACHE_REUSE = 256

NO_SPECULATION = "none"

_HELP_SECONDS = 20.0
_START_SECONDS = 180.0
_POLL_SECONDS = 0.05
_IDLE_SECONDS = 30.0
# Variables that change how fast the server is. Those that replace arguments are kept from it, so that its
# command line tells everything.
_SHOWN_VARIABLES = ("OMP_", "KMP_", "GOMP_", "GGML_")
_DROPPED_VARIABLES = "LLAMA_"


class LlamaServer:
    """Starts llama-server with one slot for a model, or uses one at an http address as it is.

    The prompt cache in main memory is off: it serves prompts that come back after others, which neither
    a replay of one document (/infill never uses it) nor decoding "from nothing cached" has.
    """

    def __init__(
        self,
        program: str,
        model: Path | None = None,
        *,
        threads: int = 1,
        context: int = 8192,
        speculation: str = NO_SPECULATION,
        more: tuple[str, ...] = (),
    ) -> None:
        """``speculation`` is a value of ``--spec-type``; ``more`` are further arguments.

        With an address as ``program`` all other arguments are the running server's own and ignored.
        """
        self._attached = program.startswith(("http://", "https://"))
        self._program, self._model = program.rstrip("/"), model
        self._threads, self._context = threads, context
        self._speculation, self._more = speculation, more
        self._child: Child | None = None
        self._base = self._program if self._attached else ""
        self._facts: dict[str, Any] = {}
        self._help = ""

    @property
    def started(self) -> bool:
        """Between ``start`` and ``stop``."""
        return bool(self._facts)

    def start(self) -> None:
        """Start it and wait until it can answer. Idempotent.

        Raises:
            PeerFailed: it cannot be started or reached, ends, or is not ready in time; with its last lines.
        """
        if self.started:
            return
        try:
            if not self._attached:
                self._launch()
            self._facts = self._describe(self.exchange("/props").json())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it if it was started here. Idempotent."""
        self._facts = {}
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def exchange(
        self, path: str, body: Mapping[str, Any] | None = None, timeout_s: float = _IDLE_SECONDS
    ) -> Exchange:
        """A request to it."""
        return Exchange(self._base + path, body, timeout_s)

    def forget(self) -> None:
        """Drop the tokens that its slot keeps, by reading a prompt of one token in their place.

        Raises:
            PeerFailed
        """
        body = {"prompt": " ", "n_predict": 0, "cache_prompt": False, "id_slot": 0}
        self.exchange("/completion", body).json()

    def wait_idle(self) -> None:
        """Wait until no request is being worked on: a cancelled one goes on for a while.

        Raises:
            PeerFailed: it does not end.
        """
        deadline = time.monotonic() + _IDLE_SECONDS
        while any(slot.get("is_processing") for slot in self._slots()):
            if time.monotonic() > deadline:
                raise PeerFailed(f"{self._base} still works on a request that was cancelled")
            time.sleep(_POLL_SECONDS)

    def describe(self) -> dict[str, Any]:
        """Version and compiler, model file, command line; empty before the start."""
        return dict(self._facts)

    def known_speculations(self) -> list[str]:
        """What the program can do by ``--spec-type``; nothing is known of an attached one. Needs no start.

        Raises:
            PeerFailed: the program cannot be run.
        """
        return [] if self._attached else speculations(self._program_help())

    def speculation_parameters(self) -> dict[str, str]:
        """How its kind of speculation is set: the program's defaults. Needs no start.

        Raises:
            PeerFailed: the program does not know this kind.
        """
        if self._attached or self._speculation == NO_SPECULATION:
            return {}
        help = self._program_help()
        known = speculations(help)
        if self._speculation not in known:
            raise PeerFailed(
                f"{self._program} cannot speculate by {self._speculation}; it knows"
                f" {', '.join(known) or 'no --spec-type at all'}"
            )
        return speculation_defaults(help, self._speculation)

    def usage(self) -> Usage:
        """Of the process; unknown for an attached server."""
        return self._child.usage() if self._child is not None else Usage(None, None, None)

    def _launch(self) -> None:
        port = _free_port()
        self._base = f"http://127.0.0.1:{port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED_VARIABLES)}
        child = self._child = Child([*self._command(), "--port", str(port)], kept)
        deadline = time.monotonic() + _START_SECONDS
        while not self._healthy():
            if child.status is not None:
                raise PeerFailed(
                    f"{self._program} ended with status {child.status} before it was ready; its last lines:\n"
                    + child.last_lines()
                )
            if time.monotonic() > deadline:
                raise PeerFailed(
                    f"{self._program} was not ready after {_START_SECONDS:g} s; its last lines:\n"
                    + child.last_lines()
                )
            time.sleep(_POLL_SECONDS)

    def _healthy(self) -> bool:
        try:
            self.exchange("/health", timeout_s=5).json()
        except PeerFailed:
            return False
        return self._child is not None and self._child.status is None

    def _command(self) -> list[str]:
        assert self._model is not None, "a program without a model"
        help = self._program_help()
        command = [self._program, "--host", "127.0.0.1", "--model", str(self._model)]
        numbers = {
            "--threads": self._threads,
            "--ctx-size": self._context,
            "--batch-size": BATCH,
            "--ubatch-size": BATCH,
            "--parallel": 1,
            "--cache-reuse": CACHE_REUSE,
        }
        for option, number in numbers.items():
            command += [option, str(number)]
        # Younger than the others; older versions have no such cache, and serve a page that costs nothing.
        command += ["--cache-ram", "0"] if "--cache-ram" in help else []
        command += ["--no-webui"] if "--no-webui" in help else []
        if self._speculation != NO_SPECULATION:
            self.speculation_parameters()  # raises where the kind is unknown
            command += ["--spec-type", self._speculation]
        return [*command, *self._more]

    def _describe(self, props: dict[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "model": Path(str(props.get("model_path", ""))).name,
            "model_type": props.get("model_ftype", ""),
            "build": props.get("build_info", ""),
            "context": props.get("default_generation_settings", {}).get("n_ctx"),
            "slots": props.get("total_slots"),
            "speculates": any(slot.get("speculative") for slot in self._slots()),
        }
        if self._attached or self._model is None:
            return facts | {"started": "by the user, with settings unknown here"}
        command = [word if word != str(self._model) else self._model.name for word in self._command()]
        return facts | {
            **_version(self._program),
            "model_bytes": self._model.stat().st_size,
            "arguments": command[1:],
            "environment": {
                name: value for name, value in os.environ.items() if name.startswith(_SHOWN_VARIABLES)
            },
        }

    def _slots(self) -> list[dict[str, Any]]:
        with contextlib.suppress(PeerFailed):  # a server may hide them
            return self.exchange("/slots").array()
        return []

    def _program_help(self) -> str:
        if not self._help:
            self._help = _output(self._program, "--help")
            if "--ctx-size" not in self._help:
                raise PeerFailed(f"{self._program} is no llama-server: its --help knows no --ctx-size")
        return self._help


def speculations(help: str) -> list[str]:
    """The values of ``--spec-type`` that a help text lists."""
    found = re.search(r"--spec-type +(\S+)", help)
    return found[1].split(",") if found else []


def speculation_defaults(help: str, kind: str) -> dict[str, str]:
    """Parameters of a kind of speculation and their defaults, as a help text states them."""
    blocks = re.findall(rf"^--spec-{re.escape(kind)}-(\S+)(.*?)(?=^-|\Z)", help, re.DOTALL | re.MULTILINE)
    found = {}
    for name, words in blocks:
        default = re.search(r"\(default:\s+([^)\s]+)", words)
        if default:
            found[name] = default[1]
    return found


def _version(program: str) -> dict[str, str]:
    facts = {}
    for line in _output(program, "--version").splitlines():
        for key, start in (("version", "version:"), ("compiler", "built with")):
            if line.startswith(start):
                facts[key] = line.removeprefix(start).strip()
    return facts


def _output(program: str, argument: str) -> str:
    try:
        done = subprocess.run([program, argument], capture_output=True, text=True, timeout=_HELP_SECONDS)
    except OSError as error:
        raise PeerFailed(f"{program} cannot be started ({error.strerror}); check the path") from error
    except subprocess.TimeoutExpired as error:
        raise PeerFailed(f"{program} {argument} does not end; is it a llama-server?") from error
    return done.stdout + done.stderr


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
