"""Starting, replacing and ending the engine without blocking the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from inference.api import EngineConfig, EngineState, EngineStatus, TextEngine
from inference.errors import DraftlineError

_log = logging.getLogger(__name__)

# Set to 0 it keeps every server's engine inside the server.
SHARING_VARIABLE = "DRAFTLINE_SHARED_ENGINE"

EngineFactory = Callable[[EngineConfig, Callable[[EngineStatus], None]], TextEngine]


def load_engine(config: EngineConfig, on_status: Callable[[EngineStatus], None]) -> TextEngine:
    """The real engine. Imported here: the server must answer ``initialize`` before that is done."""
    from inference.engine import Engine

    return Engine(config, on_status)


@dataclass(frozen=True)
class Sharing:
    """Run the engine in a process that other servers use too.

    Attributes:
        idle_seconds: how long that process stays when the last server has left.
    """

    idle_seconds: float = 60.0


def share_engine(
    config: EngineConfig, on_status: Callable[[EngineStatus], None], sharing: Sharing
) -> TextEngine:
    """An engine in a process of its own; in this one where there is no private place for a socket."""
    from inference.sharing.client import SharedEngine
    from inference.sharing.place import NoPrivatePlace, absolute, place_for

    try:
        place = place_for(config)
    except NoPrivatePlace as error:
        _log.warning("%s The engine runs in this process.", error)
        return load_engine(config, on_status)
    return SharedEngine(absolute(config), place, on_status, idle_seconds=sharing.idle_seconds)


ShareEngine = Callable[[EngineConfig, Callable[[EngineStatus], None], Sharing], TextEngine]


class EngineHost:
    """Owns at most one engine. All methods are called from the event loop."""

    def __init__(
        self,
        factory: EngineFactory,
        on_status: Callable[[EngineStatus], None],
        share: ShareEngine = share_engine,
    ) -> None:
        """``factory`` makes engines inside this process, ``share`` those outside."""
        self._factory = factory
        self._share = share
        self._on_status = on_status
        self._engine: TextEngine | None = None
        self._config: EngineConfig | None = None
        self._sharing: Sharing | None = None
        self._status = EngineStatus(EngineState.STARTING)
        self._epoch = 0
        self._closed = False
        # Replacing an engine ends the old one first: two models may not fit into memory.
        self._lock = threading.Lock()

    @property
    def engine(self) -> TextEngine | None:
        """The present engine, once it exists; it may still be loading."""
        return self._engine

    @property
    def status(self) -> EngineStatus:
        """The last status reported, also while there is no engine."""
        return self._status

    @property
    def config(self) -> EngineConfig | None:
        """What the present engine was asked to run."""
        return self._config

    @property
    def sharing(self) -> Sharing | None:
        """How the present engine was asked to be shared."""
        return self._sharing

    def start(self, config: EngineConfig, sharing: Sharing | None = None) -> None:
        """Start an engine, ending the present one. Returns at once.

        An engine that is shared and that others use does not end: then this one attaches to it again.
        """
        if self._closed:
            return
        self._config, self._sharing = config, sharing
        self._epoch += 1
        old, self._engine = self._engine, None
        loop = asyncio.get_running_loop()
        self._report(self._epoch, EngineStatus(EngineState.STARTING, "Starting"))
        threading.Thread(
            target=self._replace,
            args=(old, config, sharing, self._epoch, loop),
            name="engine-start",
            daemon=True,
        ).start()

    def close(self) -> None:
        """End the engine in the background."""
        self._closed = True
        self._epoch += 1
        engine, self._engine = self._engine, None
        if engine is not None:
            threading.Thread(target=engine.close, name="engine-close", daemon=True).start()

    def _replace(
        self,
        old: TextEngine | None,
        config: EngineConfig,
        sharing: Sharing | None,
        epoch: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        def report(status: EngineStatus) -> None:
            self._call(loop, self._report, epoch, status)

        with self._lock:
            try:
                if old is not None:
                    old.retire()
                if epoch != self._epoch:
                    return
                if sharing is None:
                    engine = self._factory(config, report)
                else:
                    engine = self._share(config, report, sharing)
                self._call(loop, self._adopt, epoch, engine)
                engine.start()
            except DraftlineError as error:
                report(EngineStatus(EngineState.FAILED, error.message, None, error.code, error.next_step))
            except Exception as error:
                _log.exception("the engine could not be created")
                report(
                    EngineStatus(
                        EngineState.FAILED, f"The engine could not be created: {error}", None, "error"
                    )
                )

    @staticmethod
    def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
        try:
            loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The loop has ended while the engine's thread still had something to say.
            _log.debug("status after the end of the event loop dropped")

    def _adopt(self, epoch: int, engine: TextEngine) -> None:
        if epoch == self._epoch:
            self._engine = engine
        else:
            # Another one took its place before this one was known.
            end = engine.close if self._closed else engine.retire
            threading.Thread(target=end, name="engine-close", daemon=True).start()

    def _report(self, epoch: int, status: EngineStatus) -> None:
        if epoch == self._epoch:
            self._status = status
            self._on_status(status)
