"""A made-up engine behind a real socket, inside the test's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inference.api import EngineConfig, EngineState, EngineStatus
from inference.sharing.client import SharedEngine
from inference.sharing.link import Listener
from inference.sharing.place import Place
from inference.sharing.service import EngineService, Served
from tests.fake_engine import FakeCodec, FakeEngine


def until(accept: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait for a condition; its value."""
    end = time.monotonic() + seconds
    while not (value := accept()):
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)
    return value


class Stand:
    """A service with a `FakeEngine`, and clients of it."""

    def __init__(self, directory: Path, **behaviour: Any) -> None:
        directory.chmod(0o700)
        self.place = Place(directory, "0123456789abcdef")
        self.config = EngineConfig()
        self.engine = FakeEngine()
        self.clients: list[SharedEngine] = []
        self.statuses: list[EngineStatus] = []

        def make(config: EngineConfig, on_status: Callable[[EngineStatus], None]) -> FakeEngine:
            self.engine = FakeEngine(config, on_status, **behaviour)
            return self.engine

        self.service = EngineService(Served(self.place.key, self.config, make, lambda engine: {"fake": True}))
        self.listener: Listener = self.place.listen()
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        self.place.pid.write_text("0")
        self.service.start()

    def attach(self, *, ready: bool = True, **options: Any) -> SharedEngine:
        """Another client."""
        client = SharedEngine(
            self.config, self.place, self.statuses.append, codec=lambda description: FakeCodec(), **options
        )
        self.clients.append(client)
        client.start()
        if ready:
            until(lambda: client.status.state is EngineState.READY)
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.listener.close()
        self.service.hang_up(1)

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                self.service.serve(listener.accept())
            except OSError:
                return
