"""A language server that answers by rule: what an editor makes of answers that no model would give.

Suggestions repeat the text in front of the cursor: behind ``abc`` comes ``<abc>``. So a suggestion tells
where it was made for. SUGGEST_SECONDS is how long each takes. Edits answer with the JSON in EDIT_ANSWER,
after the partial results in EDIT_PARTIALS; with the variable EDIT_HOLD no answer comes until the request is
cancelled.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

_lock = threading.Lock()
_documents: dict[str, list[str]] = {}
_out = sys.stdout.buffer


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with _lock:
        _out.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        _out.flush()


def suggest(id: Any, params: dict[str, Any]) -> None:
    position = params["position"]
    line = _documents[params["textDocument"]["uri"]][position["line"]]
    before = line.encode()[: position["character"]].decode()
    texts = [f"<{before}>"]
    if params["context"]["triggerKind"] == 1:
        texts += [f"[{before}]", f"({before})"]
    items = [{"insertText": text, "range": {"start": position, "end": position}} for text in texts]
    delay = float(os.environ.get("SUGGEST_SECONDS", "0"))
    threading.Timer(delay, send, [{"id": id, "result": items}]).start()


def edit(id: Any, params: dict[str, Any]) -> None:
    for value in json.loads(os.environ.get("EDIT_PARTIALS", "[]")):
        send({"method": "$/progress", "params": {"token": params["partialResultToken"], "value": value}})
    answer = json.loads(os.environ["EDIT_ANSWER"])
    if answer["edit"] is not None:
        (change,) = answer["edit"]["documentChanges"]
        change["textDocument"] = params["textDocument"]
    answer["summary"] = answer["summary"].replace("INSTRUCTION", params["instruction"])
    if "EDIT_HOLD" not in os.environ:
        send({"id": id, "result": answer})


def handle(message: dict[str, Any]) -> bool:
    method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
    if method == "initialize":
        capabilities = {"textDocumentSync": 1, "inlineCompletionProvider": True, "positionEncoding": "utf-8"}
        send({"id": id, "result": {"capabilities": capabilities}})
    elif method == "initialized":
        send({"method": "draftline/status", "params": {"state": "ready", "message": "", "reason": ""}})
    elif method == "textDocument/didOpen":
        _documents[params["textDocument"]["uri"]] = params["textDocument"]["text"].split("\n")
    elif method == "textDocument/didChange":
        _documents[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"].split("\n")
    elif method == "textDocument/inlineCompletion":
        suggest(id, params)
    elif method == "draftline/inlineEdit":
        edit(id, params)
    elif method == "$/cancelRequest":
        send({"id": params["id"], "error": {"code": -32800, "message": "cancelled"}})
    elif method == "exit":
        return False
    elif id is not None and method:
        send({"id": id, "result": None})
    return True


def main() -> None:
    while True:
        length = 0
        while header := sys.stdin.buffer.readline().strip():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length or not handle(json.loads(sys.stdin.buffer.read(length))):
            return


main()
