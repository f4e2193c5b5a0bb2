"""Finding the engine process, or starting it."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from inference import paths
from inference.api import EngineConfig
from inference.errors import EngineLost, EngineStopped
from inference.sharing.link import Link
from inference.sharing.messages import BadMessage, Hello, Leave, Welcome, decode, encode
from inference.sharing.place import WINDOWS, Place
from inference.sharing.process import ANOTHER_RUNS, ENDED, arguments_for

_log = logging.getLogger(__name__)

ATTACH_SECONDS = 60.0
# A process answers a greeting whatever its model does; only the loading of a library may hold it up.
SILENT_SECONDS = 5.0
# Greetings without an answer after which a process is taken for dead.
PATIENCE = 6
_POLL_SECONDS = 0.02
_PAUSE_SECONDS = 0.5
_MOST_DEATHS = 3  # of processes that never listened

Spawn = Callable[[Place, EngineConfig], "subprocess.Popen[bytes]"]

# The command that `spawn` runs; tests put another engine here.
COMMAND: tuple[str, ...] = (sys.executable, "-m", "inference.sharing")


class Silent(Exception):
    """A process holds the engine's address, and does not answer."""


def attach(
    place: Place,
    config: EngineConfig,
    hello: Hello,
    stop: threading.Event,
    spawn: Spawn | None = None,
    patience: int = PATIENCE,
) -> tuple[Link, Welcome]:
    """A greeted connection to the engine's process, which is started if there is none.

    However many servers do this at once, one process serves: it holds a lock, and the others end. One that is
    silent for ``patience`` greetings is killed: nobody else gets an answer either.

    Raises:
        EngineLost: no process can be started, or none answers.
        EngineStopped: ``stop`` was set.
    """
    spawn = spawn or start_process
    process: subprocess.Popen[bytes] | None = None
    deaths = silences = 0
    not_before = 0.0
    deadline = time.monotonic() + ATTACH_SECONDS
    while not stop.is_set():
        try:
            return greet(place, hello)
        except Silent:
            silences += 1
            _log.warning("the engine process does not answer")
            if silences >= patience:
                silences = 0
                end_silent(place)
        except OSError as error:
            _log.debug("no engine process: %s", error)
            silences = 0
        now = time.monotonic()
        if now > deadline:
            raise EngineLost("The engine process does not answer.", f"See {place.log}.")
        if process is not None and (status := process.poll()) is not None:
            process = None
            if status in (ENDED, ANOTHER_RUNS):
                not_before = now + _PAUSE_SECONDS  # there is one that listens now, or in a moment
            else:
                deaths += 1
                if deaths >= _MOST_DEATHS:
                    raise EngineLost(f"The engine process ended with status {status}.", f"See {place.log}.")
        if process is None and now >= not_before and not silences:
            try:
                process = spawn(place, config)
            except OSError as error:
                raise EngineLost(
                    f"The engine process cannot be started: {error}.", "Switch sharedEngine off."
                ) from error
        stop.wait(_POLL_SECONDS)
    raise EngineStopped("The engine was closed while it was started.")


def greet(place: Place, hello: Hello) -> tuple[Link, Welcome]:
    """Connect and say hello.

    Raises:
        Silent: somebody listens, and does not answer.
        OSError: nobody listens, or it ends right now.
    """
    try:
        link = place.connect(SILENT_SECONDS)
    except TimeoutError as error:
        raise Silent from error
    try:
        link.send(encode(hello))
        data = link.receive()
        answer = None if data is None else decode(data)
    except TimeoutError as error:
        link.close()
        raise Silent from error
    except (OSError, BadMessage) as error:
        link.close()
        raise ConnectionAbortedError(str(error)) from error
    if not isinstance(answer, Welcome):
        link.close()
        raise ConnectionAbortedError("the engine process hung up")
    link.set_timeout(None)
    return link, answer


def dismiss(place: Place, hello: Hello, seconds: float) -> None:
    """End a process that was only just started, unless somebody else uses it; it may not listen yet.

    Waits for its end, but no longer than ``seconds``.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            link, _ = greet(place, hello)
        except (Silent, OSError):
            time.sleep(_POLL_SECONDS)
            continue
        with contextlib.suppress(OSError):
            link.set_timeout(left)
            link.send(encode(Leave(end=True)))
            while link.receive() is not None:
                pass  # the status
        link.close()
        return


def start_process(place: Place, config: EngineConfig) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, its editor and their terminal.

    Raises:
        OSError
    """
    # Nothing may depend on the directory that this process happens to be in.
    root = Path(__file__).resolve().parents[2]
    inherited = [Path(part).absolute() for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    path = os.pathsep.join(map(str, [root, *inherited]))
    home = str(paths.home().absolute())
    command = [*COMMAND, *arguments_for(place, config)]
    flags = 0
    if WINDOWS:
        flags = 0x00000008 | 0x00000200  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
    descriptor = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            cwd=place.directory,
            env={**os.environ, "PYTHONPATH": path, "DRAFTLINE_HOME": home},
            start_new_session=True,
            creationflags=flags,
        )
    finally:
        os.close(descriptor)
    _log.info("started the engine process %d, which logs to %s", process.pid, place.log)
    # Its end has to be asked for, or it stays in the table of processes.
    threading.Thread(target=process.wait, name="engine-process", daemon=True).start()
    return process


def end_silent(place: Place) -> None:
    """Kill the process that holds an address without answering: nobody else can use it, or start another.

    It is certain to be the right one: its command line names the key.
    """
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(place.pid.read_text(encoding="ascii")))
        if any(place.key in word for word in process.cmdline()):
            _log.warning("ending the engine process %d, which does not answer", process.pid)
            process.kill()
            process.wait(timeout=SILENT_SECONDS)
