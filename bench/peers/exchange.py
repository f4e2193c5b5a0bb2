"""One HTTP request answered with JSON or a stream of events, which another thread may cancel."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Generator, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from bench.peers.base import PeerFailed

_EXCERPT = 200  # characters of an unexpected answer that a message quotes


class PeerTimeout(PeerFailed):
    """The system is silent for too long."""


class Cancelled(Exception):
    """``cancel`` ended the exchange."""


class Exchange:
    """A request that is sent when its answer is asked for, once.

    Every exchange has a connection of its own: cancelling closes it, which is how a server of completions
    learns that nobody waits any more.
    """

    def __init__(
        self,
        url: str,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """A POST of ``body`` as JSON, or a GET. ``timeout_s``: the longest silence."""
        self._url, self._body, self._timeout_s = url, body, timeout_s
        self._headers = dict(headers or {})
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._cancelled = False

    def json(self) -> dict[str, Any]:
        """The answer.

        Raises:
            PeerFailed: no connection, an error status, or no JSON object.
            PeerTimeout
            Cancelled
        """
        with self._response() as response:
            return self._object(response.read())

    def array(self) -> list[Any]:
        """The answer where it is an array. Raises what ``json`` raises."""
        with self._response() as response:
            value = self._parsed(response.read())
        if not isinstance(value, list):
            raise PeerFailed(f"{self._url} answered with no JSON array: {str(value)[:_EXCERPT]}")
        return value

    def events(self) -> Generator[dict[str, Any], None, None]:
        """The data of server-sent events as they come; the whole answer as one if it is no stream.

        Closing the iterator early closes the connection. Raises what ``json`` raises.
        """
        with self._response() as response:
            if "event-stream" not in response.headers.get("Content-Type", ""):
                yield self._object(response.read())
                return
            for line in response:
                field, _, data = line.partition(b":")
                if field == b"data" and data.strip() != b"[DONE]":
                    yield self._object(data)
            if self._cancelled:
                raise Cancelled

    def cancel(self) -> None:
        """Close the connection; the thread that waits for the answer gets ``Cancelled``."""
        with self._lock:
            self._cancelled = True
            connected = self._socket
        if connected is not None:
            # Only a shutdown wakes a thread that is reading; that thread then closes.
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _response(self) -> Iterator[HTTPResponse]:
        parts = urlsplit(self._url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        payload = None if self._body is None else json.dumps(self._body).encode("utf-8")
        headers = {"Content-Type": "application/json", **self._headers}
        try:
            connection = kind(parts.netloc, timeout=self._timeout_s)
        except HTTPException as error:
            raise PeerFailed(f"{self._url} is no address of a server: {error}") from error
        try:
            connection.connect()
            with self._lock:
                self._socket = connection.sock
                if self._cancelled:
                    raise Cancelled
            connection.request("GET" if payload is None else "POST", parts.path or "/", payload, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise self._refusal(response)
            yield response
        except (OSError, HTTPException) as error:
            if self._cancelled:
                raise Cancelled from error
            raise self._broken(error) from error
        finally:
            connection.close()

    def _object(self, data: bytes) -> dict[str, Any]:
        value = self._parsed(data)
        if not isinstance(value, dict):
            raise PeerFailed(f"{self._url} answered with no JSON object: {_excerpt(data)}")
        return value

    def _parsed(self, data: bytes) -> Any:
        if self._cancelled:
            raise Cancelled
        try:
            return json.loads(data)
        except ValueError as error:
            raise PeerFailed(f"{self._url} answered with no JSON: {_excerpt(data)}") from error

    def _refusal(self, response: HTTPResponse) -> PeerFailed:
        data = response.read()
        if response.status == 404:
            return PeerFailed(
                f"{self._url} does not exist there (status 404): is the address right, and the server of this"
                f" kind? It says: {_excerpt(data)}"
            )
        words = _excerpt(data)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            words = str(json.loads(data)["error"]["message"])
        return PeerFailed(f"{self._url} refused the request (status {response.status}): {words}")

    def _broken(self, error: Exception) -> PeerFailed:
        if isinstance(error, TimeoutError):
            return PeerTimeout(f"{self._url} has been silent for {self._timeout_s:g} s")
        if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
            reason = error.strerror or str(error)
            return PeerFailed(f"{self._url} cannot be reached ({reason}): does the server run there?")
        return PeerFailed(f"the connection to {self._url} broke: {error!r}")


def _excerpt(data: bytes) -> str:
    text = data.decode("utf-8", errors="replace").strip()
    return repr(text[:_EXCERPT]) if text else "(nothing)"
