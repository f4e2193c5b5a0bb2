"""The engine process: holds the lock of its engine, listens, and ends when nobody needs it any more."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cattrs.preconf.json import make_converter
from filelock import FileLock, Timeout

from inference.api import EngineConfig, EngineStatus, TextEngine
from inference.sharing.link import Listener, Stranger
from inference.sharing.place import Place
from inference.sharing.service import Describe, EngineService, MakeEngine, Served

_log = logging.getLogger(__name__)

# Exit statuses for the server that started it; with the first it listens.
ENDED, FAILED, ANOTHER_RUNS = 0, 1, 75
_MOST_LOG_BYTES = 256 * 1024
# A failure has to reach those who are attached.
_FAREWELL_SECONDS = 2.0
_PAUSE_SECONDS = 0.2
_OPTIONS = make_converter()


def arguments_for(place: Place, config: EngineConfig) -> list[str]:
    """The command line's arguments."""
    options = {"directory": str(place.directory), "key": place.key}
    return [json.dumps(options), json.dumps(_OPTIONS.unstructure(config))]


def load_engine(config: EngineConfig, on_status: Callable[[EngineStatus], None]) -> TextEngine:
    """The real engine."""
    from inference.engine import Engine

    return Engine(config, on_status)


def describe_codec(engine: TextEngine) -> dict[str, Any]:
    """Where a client finds the tokenizer of a loaded engine; see `codec.open_codec`."""
    from inference.engine import Engine

    assert isinstance(engine, Engine)
    prepared = engine.runtime.prepared
    return {"path": str(prepared.tokenizer), "end_ids": list(prepared.config.get("eos_token_ids", ()))}


def main(argv: Sequence[str], make: MakeEngine = load_engine, describe: Describe = describe_codec) -> int:
    """Serve one engine until nobody is attached for the agreed time. Does not return when it has served.

    Args:
        argv: what `arguments_for` gives.
        make, describe: how to make the engine, and how clients make its tokenizer.

    Returns:
        ANOTHER_RUNS: a process for this engine runs already. FAILED: there is no engine, or nobody can be
            listened to.
    """
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(process)d %(message)s"
    )
    options = json.loads(argv[0])
    place = Place(Path(options["directory"]), options["key"])
    config = _OPTIONS.structure(json.loads(argv[1]), EngineConfig)
    tell = _leave_family()
    # Whoever has the lock is the only one, whatever happened to the process before: the system takes it
    # from a dead one. So what is left of sockets is of no use to anybody.
    lock = FileLock(place.lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell(ANOTHER_RUNS)
        return ANOTHER_RUNS
    try:
        _shorten(place.log)
        service = EngineService(Served(place.key, config, make, describe))
        listener = place.listen()
        place.pid.write_text(str(os.getpid()), encoding="ascii")
    except Exception:  # told that it listens, servers would start it again and again
        _log.exception("cannot serve %s in %s", config.model, place.directory)
        tell(FAILED)
        return FAILED
    tell(ENDED)
    _log.info("the engine process for %s listens", config.model)
    try:
        closing = threading.Event()
        threading.Thread(
            target=_accept, args=(listener, service, closing), name="accept", daemon=True
        ).start()
        service.start()
        service.wait_until_idle()
        # Nobody finds it any more; those who are on their way are told by the end of the connection.
        closing.set()
        listener.close()
        if service.failed:
            lock.release()  # who comes next may have more luck, with other files or more memory
            service.hang_up(_FAREWELL_SECONDS)
        _log.info("the engine process ends")
    except BaseException:
        _log.exception("the engine process fails")
        _end(FAILED)
    _end(ENDED)
    return ENDED


def _leave_family() -> Callable[[int], None]:
    """Go on as nobody's child: editors that end a server end its children too.

    The parent stays until it is told how it went, and ends with that status. Nothing is loaded yet that could
    mind a fork, no thread runs, and no lock is held, which a fork would lose. Elsewhere than on Linux the
    system's libraries may mind, so there this does nothing.

    Returns:
        tells the parent.
    """
    if not sys.platform.startswith("linux"):
        return lambda status: None
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        told = os.read(reading, 1)
        os._exit(told[0] if told else FAILED)
    os.close(reading)

    def tell(status: int) -> None:
        with contextlib.suppress(OSError):  # it was killed
            os.write(writing, bytes([status]))
        os.close(writing)

    return tell


def _end(status: int) -> None:
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    # The interpreter's own end would wait for a model that is loading or decoding in native code.
    os._exit(status)


def _accept(listener: Listener, service: EngineService, closing: threading.Event) -> None:
    said = ""
    while not closing.is_set():
        try:
            service.serve(listener.accept())
        except (Stranger, ConnectionError) as error:
            _log.warning("a connection was refused: %s", error)
        except Exception as error:  # if this ended, nobody new would get an answer
            # Too many open files or threads, say, which passes, and must not fill the log until then.
            if not closing.wait(_PAUSE_SECONDS) and str(error) != said:
                said = str(error)
                _log.error("a connection could not be taken: %s", said)


def _shorten(log: Path) -> None:
    """The file is only appended to, by one process after the other."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > _MOST_LOG_BYTES:
            os.truncate(log, 0)
