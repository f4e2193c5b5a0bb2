"""pygls' protocol class, adapted: documents are ours, and no request stays without an answer."""

from __future__ import annotations

import json
import logging
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

from lsp_server.protocol import STATISTICS

_log = logging.getLogger(__name__)

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_NOT_INITIALIZED = -32002

# pygls would keep a second copy of every text and rebuild it at each change, and its generators leave
# a future behind for each notification. With these left out our handlers are called directly.
_OWN_FEATURES = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


class DraftlineProtocol(LanguageServerProtocol):
    """Message handling of one connection. Everything runs on the event loop."""

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()  # type: ignore[no-untyped-call]
        for feature in _OWN_FEATURES:
            self.fm.builtin_features.pop(feature, None)

    def receive(self, body: bytes) -> None:
        """Handle one message.

        Unlike pygls' loop this structures the message as a whole, not each object inside it, and
        answers requests that it cannot read or that come at the wrong time (LSP 3.18, "initialize"
        and "shutdown").

        Raises:
            SystemExit: the client said ``exit``; the code is 0 after ``shutdown``, else 1.
        """
        try:
            raw = json.loads(body)
        except ValueError as error:
            _log.warning("a message is no JSON: %s", error)
            self._refuse(None, _PARSE_ERROR, "The message is no JSON.")
            return
        if not isinstance(raw, dict) or raw.get("jsonrpc") != "2.0":
            _log.warning("a message is no JSON-RPC 2.0 object")
            self._refuse(None, _INVALID_REQUEST, "The message is no JSON-RPC 2.0 object.")
            return
        method, id = raw.get("method"), raw.get("id")
        if method is not None and not self._in_season(method, id):
            return
        if method == STATISTICS and raw.get("params") is None:
            raw["params"] = {}  # pygls wants an object for a method that it does not know
        try:
            message = self.structure_message(raw)
        except JsonRpcException as error:
            if method is None:
                _log.warning("an answer of the client cannot be read")
                # Whoever waits for it would wait for ever.
                waiting = self._request_futures.pop(id, None) if isinstance(id, (str, int)) else None
                if waiting is not None and not waiting.done():
                    waiting.set_exception(error)
                return
            _log.warning("the parameters of %s cannot be read", method)
            if id is not None:
                self._refuse(id, error.code, f"The parameters of {method} cannot be read.")
            return
        try:
            self.handle_message(message)
        except Exception:
            _log.exception("handling %s failed", method)

    def _in_season(self, method: str, id: Any) -> bool:
        """Whether the message may come now; answers it if it may not and is a request."""
        if method in (types.EXIT, types.INITIALIZE) and not self._shutdown:
            return True
        if self._shutdown and method != types.EXIT:
            if id is not None:
                self._refuse(id, _INVALID_REQUEST, "The server is shut down.")
            return False
        if self._workspace is None and method != types.EXIT:
            if id is not None:
                self._refuse(id, _NOT_INITIALIZED, "The server is not initialized.")
            return False
        return True

    def _refuse(self, id: Any, code: int, message: str) -> None:
        # Written by hand: lsprotocol leaves out an id of null, which JSON-RPC asks for here.
        error = {"code": code, "message": message}
        self._send_data({"jsonrpc": self.VERSION, "id": id, "error": error})
