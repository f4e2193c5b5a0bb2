"""A Python module in a process of its own that answers lines of JSON with lines of JSON."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.peers.base import PeerFailed, Usage
from bench.peers.child import Child


class LineWorker:
    """A running process. One order is answered before the next one is given.

    Its memory is that of the work alone, and its threads sleep while it waits for a line.
    """

    def __init__(self, name: str, module: str, environment: Mapping[str, str] | None = None) -> None:
        """Start ``python -m module``; ``name`` is for messages.

        Raises:
            PeerFailed: it cannot be started.
        """
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        variables = {**os.environ, "PYTHONPATH": path, **(environment or {})}
        self._name = name
        self._child = Child([sys.executable, "-m", module], variables, pipes=True)
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._child, self._answers), daemon=True).start()

    def ask(self, order: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to an order.

        Raises:
            PeerFailed: no answer for ``seconds``, the process ended, or the answer is an ``error``.
        """
        try:
            self._child.input.write(json.dumps(order).encode("utf-8") + b"\n")
            self._child.input.flush()
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise PeerFailed(f"{self._name} has not answered for {seconds:g} s") from None
        except OSError:
            line = b""
        if not line:
            raise PeerFailed(f"{self._name} ended unexpectedly; its last lines:\n{self._child.last_lines()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(f"{self._name}: {answer['error']}")
        return answer

    def usage(self) -> Usage:
        """Of the process, now."""
        return self._child.usage()

    def end(self) -> None:
        """End the process. Idempotent."""
        self._child.end()


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The other side: answer the lines on stdin until it ends; what ``answer`` raises is an ``error``."""
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # whatever it is, the other side must see it
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)


def _read(child: Child, answers: queue.SimpleQueue[bytes]) -> None:
    """Pass lines on; an empty one says that there are no more."""
    try:
        for line in child.output:
            answers.put(line)
    except ValueError:  # closed while it was read
        pass
    answers.put(b"")
