"""Which engine processes of this user run, for people who want to know where the memory went."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from inference.diagnosis.machine import private_bytes
from inference.sharing.messages import Hello
from inference.sharing.place import Place, candidates
from inference.sharing.start import Silent, greet


@dataclass(frozen=True)
class Running:
    """One engine process.

    Attributes:
        model: what it runs; "" where the process does not answer.
        state: as in ``draftline/status``, or "silent".
        clients: servers that are attached.
        requests: of theirs, that have no answer yet.
        private_bytes: as `machine.private_bytes`, None if the system does not tell.
        log: file with what it printed.
    """

    pid: int
    model: str
    state: str
    clients: int
    requests: int
    private_bytes: int | None
    log: str


def running_engines(directory: Path | None = None) -> list[Running]:
    """Those with an address in ``directory``, by default in any that might be used.

    Asking starts none, keeps none and makes no directory.
    """
    found: list[Running] = []
    for path in [directory] if directory is not None else candidates():
        try:
            files = sorted(path.glob("*.pid"))
        except OSError:
            continue  # another user's
        looks = (_look(Place(path, file.stem)) for file in files)
        found += [running for running in looks if running is not None]
    return found


def _look(place: Place) -> Running | None:
    try:
        link, welcome = greet(place, Hello(place.key, os.getpid(), visit=True))
    except Silent:
        return _silent(place)
    except OSError:
        return None
    link.close()
    memory = _private_bytes(welcome.pid)
    return Running(
        welcome.pid, welcome.model, welcome.state, welcome.clients, welcome.requests, memory, str(place.log)
    )


def _silent(place: Place) -> Running | None:
    try:
        pid = int(place.pid.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return Running(pid, "", "silent", 0, 0, _private_bytes(pid), str(place.log))


def _private_bytes(pid: int) -> int | None:
    try:
        return private_bytes(pid)
    except psutil.Error:
        return None
