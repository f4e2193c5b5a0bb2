"""What a recorded server suggested, and whether what an editor shows is one of those suggestions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.editors.vscode_page import Shown

# Closed by the editor when the bracket or quote was typed.
CLOSERS = ")]}\"'"


@dataclass(frozen=True)
class Suggested:
    """One item of an answer: ``text`` takes the place of what stood behind ``head`` in line ``line``.

    ``whole`` is the document that its acceptance would leave.
    """

    line: int
    head: str
    text: str
    whole: str


def messages(log: Path) -> list[dict[str, Any]]:
    """What recorded_server.py has written so far, in the order in which it came.

    A message is passed on before it is written, so a quick answer may be written in front of its request.
    """
    if not log.exists():
        return []
    whole = log.read_text(encoding="utf-8").rpartition("\n")[0]
    entries: list[dict[str, Any]] = [json.loads(line) for line in whole.split("\n") if line]
    return sorted(entries, key=lambda entry: float(entry["at"]))


def suggested(log: Path) -> list[Suggested]:
    """All items of all answers. Documents of ASCII, since columns are taken for characters."""
    documents: dict[str, str] = {}
    open_requests: dict[object, tuple[dict[str, Any], str]] = {}
    found: list[Suggested] = []
    for entry in messages(log):
        message = entry["message"]
        method, params = message.get("method"), message.get("params")
        if entry["from"] == "server":
            if "result" in message and message["id"] in open_requests:
                request, text = open_requests.pop(message["id"])
                found += [_item(item, request, text) for item in items_of(message["result"])]
        elif method == "textDocument/didOpen":
            documents[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            uri = params["textDocument"]["uri"]
            for change in params["contentChanges"]:
                documents[uri] = _changed(documents[uri], change)
        elif method == "textDocument/inlineCompletion":
            open_requests[message["id"]] = (params, documents[params["textDocument"]["uri"]])
    return found


def answers(log: Path) -> list[list[dict[str, Any]]]:
    """The items of each answer to a request for suggestions, but of those that a newer one replaced."""
    requests: set[object] = set()
    found: list[list[dict[str, Any]]] = []
    for entry in messages(log):
        message = entry["message"]
        if message.get("method") == "textDocument/inlineCompletion":
            requests.add(message["id"])
        elif (
            entry["from"] == "server" and message.get("result") is not None and message.get("id") in requests
        ):
            found.append(items_of(message["result"]))
    return found


def asked(log: Path) -> int:
    """How often suggestions were asked for."""
    return sum(entry["message"].get("method") == "textDocument/inlineCompletion" for entry in messages(log))


def items_of(result: Any) -> list[dict[str, Any]]:
    """The items of an answer, whatever its form."""
    return list(result["items"] if isinstance(result, dict) else result or [])


def is_suggested(seen: Shown, known: Iterable[Suggested]) -> bool:
    """Whether the suggestion in ``seen`` is one that was made, for the text that ``seen`` shows.

    The lines with the suggestion in them must be those that its acceptance leaves, and what is in the
    document of it must be its beginning: some of its lines, where it was typed along behind a line end, and
    the begin of the next one.
    """
    changed = [n for n in range(len(seen.text)) if seen.text[n] != seen.drawn[n]]
    # Where all that is left stands below, no line of the document tells which one it follows.
    places = changed or range(len(seen.text))
    return len(changed) < 2 and any(_is_in(seen, item, at) for item in known for at in places)


def _is_in(seen: Shown, item: Suggested, at: int) -> bool:
    """Whether ``seen`` shows in line ``at`` what is left of ``item``."""
    first, *others = item.text.split("\n")
    left = [item.head + first, *others]
    done = at - item.line
    if not 0 <= done < len(left) or at >= len(seen.drawn):
        return False
    if any(_bare(seen.text[item.line + n]) != _bare(left[n]) for n in range(done)):
        return False
    drawn, typed = seen.drawn[at], _bare(seen.text[at])
    if not drawn.startswith(left[done]) or drawn[len(left[done]) :].strip(CLOSERS):
        return False
    along = left[done].startswith(typed) and (done > 0 or len(typed) >= len(_bare(item.head)))
    return along and _is_below(seen.below, left[done + 1 :])


def _bare(line: str) -> str:
    return line.rstrip(CLOSERS)


def _is_below(drawn: list[str], others: list[str]) -> bool:
    """Whether these are the other lines of a suggestion, those that are visible.

    What the document has behind the cursor stands behind the last one.
    """
    wanted = others[: len(drawn)]
    if len(wanted) < len(drawn) or drawn[:-1] != wanted[:-1]:
        return False
    return not drawn or (drawn[-1].startswith(wanted[-1]) and not drawn[-1][len(wanted[-1]) :].strip(CLOSERS))


def _item(item: dict[str, Any], request: dict[str, Any], text: str) -> Suggested:
    at = request["position"]
    start = item["range"]["start"] if item.get("range") else at
    end = item["range"]["end"] if item.get("range") else at
    whole = _changed(text, {"range": {"start": start, "end": end}, "text": item["insertText"]})
    head = text.split("\n")[start["line"]][: start["character"]]
    return Suggested(start["line"], head, item["insertText"], whole)


def _changed(text: str, change: dict[str, Any]) -> str:
    if "range" not in change:
        return str(change["text"])
    lines = text.split("\n")

    def offset(point: dict[str, int]) -> int:
        return sum(len(line) + 1 for line in lines[: point["line"]]) + point["character"]

    start, end = offset(change["range"]["start"]), offset(change["range"]["end"])
    return f"{text[:start]}{change['text']}{text[end:]}"
