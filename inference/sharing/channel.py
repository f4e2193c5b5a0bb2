"""A link with two threads: sending never waits, and messages come as they arrive."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from inference.sharing.link import Link
from inference.sharing.messages import BadMessage, Message, decode, encode

_log = logging.getLogger(__name__)

# That wait to be sent: who does not read for so long is gone, or stopped.
MOST_WAITING = 100_000


class Channel:
    """Both callbacks come from the reading thread; ``on_end`` comes once, last."""

    def __init__(
        self, link: Link, on_message: Callable[[Message], None], on_end: Callable[[], None], name: str
    ) -> None:
        self._link = link
        self._on_message = on_message
        self._on_end = on_end
        self._name = name
        self._waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name=f"{name}-writer", daemon=True)
        self.ended = threading.Event()
        self.heard = False  # a message came since this was last set to False

    def start(self) -> None:
        """Begin to read and to send."""
        self._writer.start()
        threading.Thread(target=self._read, name=f"{self._name}-reader", daemon=True).start()

    def send(self, message: Message) -> None:
        """Send it soon; after the end it is dropped."""
        if self.ended.is_set():
            return
        if self._waiting.qsize() > MOST_WAITING:
            _log.warning("%s: the other side does not read", self._name)
            self._link.shut()
        else:
            self._waiting.put(message)

    def close(self, *, flush: bool = True) -> None:
        """End it; with ``flush`` after what waits is sent."""
        self._waiting.put(None)
        if not flush:
            self._link.shut()

    def _write(self) -> None:
        try:
            while (message := self._waiting.get()) is not None:
                self._link.send(encode(message))
        except OSError as error:
            _log.debug("%s: sending failed: %s", self._name, error)
        except Exception:
            _log.exception("%s: sending failed", self._name)
        self._link.shut()

    def _read(self) -> None:
        try:
            while (data := self._link.receive()) is not None:
                self.heard = True
                self._on_message(decode(data))
        except BadMessage as error:
            _log.error("%s: not understood: %s", self._name, error)
        except OSError as error:
            _log.debug("%s: reading failed: %s", self._name, error)
        except Exception:
            _log.exception("%s: handling a message failed", self._name)
        self.ended.set()
        self._link.shut()
        self._waiting.put(None)
        try:
            self._on_end()
        except Exception:
            _log.exception("%s: handling the end failed", self._name)
        self._writer.join()
        self._link.close()
