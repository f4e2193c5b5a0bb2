"""Inline edits as LSP sees them: parameters read, answers and progress written.

``draftline/inlineEdit`` (request)
    ``{textDocument: {uri, version?}, range, instruction, diagnostics?: Diagnostic[], partialResultToken?,
    workDoneToken?}``. Answers ``{edit, summary, flags, reason, message, hunks, stats}``: ``edit`` is a
    ``WorkspaceEdit`` for the version that was asked about, or null, and then ``reason`` is a code of
    inline_edit/reasons.py. ``flags`` name what makes the edit doubtful: show it, but do not apply it unasked.

    With a ``partialResultToken`` come ``$/progress`` values ``{hunks, open, kept, lines}``: ``hunks`` are
    those that became final since the last value, ``open`` is what has begun behind them (its lines only grow)
    or null, ``kept`` of ``lines`` lines of the selection are reached. A hunk replaces the whole lines
    ``startLine`` to ``endLine`` (exclusive) of the version that was asked about.

``draftline/inlineEdit/warmUp`` (request)
    ``{textDocument, range, diagnostics?}``: reads all of the prompt that comes before the instruction, while
    the user types it. Answers ``{read: boolean}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.uris import to_fs_path

from lsp_server.documents.positions import PositionEncoding, to_units
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.context import Diagnostic
from lsp_server.inline_edit.diff import Hunk, changed_spans
from lsp_server.inline_edit.reasons import FLAG_MESSAGES
from lsp_server.inline_edit.rewrite import Progress
from lsp_server.inline_edit.selection import Selection
from lsp_server.inline_edit.service import EditAnswer, EditRequest

INLINE_EDIT = "draftline/inlineEdit"
WARM_UP = "draftline/inlineEdit/warmUp"


def plain(value: Any) -> Any:
    """JSON values out of the objects that pygls makes of messages it has no type for."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def request_of(params: Any, *, needs_instruction: bool = True) -> EditRequest:
    """The request in parameters.

    Raises:
        JsonRpcInvalidParams: a field is missing or of another type.
    """
    params = plain(params)
    try:
        document, range = params["textDocument"], params["range"]
        uri = document["uri"]
        version = document.get("version")
        instruction = params["instruction"] if needs_instruction else ""
        start, end = _point(range["start"]), _point(range["end"])
        diagnostics = tuple(map(_diagnostic, params.get("diagnostics") or ()))
        if not isinstance(uri, str) or not isinstance(instruction, str):
            raise TypeError("uri and instruction are texts")
        if version is not None and not isinstance(version, int):
            raise TypeError("version is a number")
    except (KeyError, TypeError, AttributeError) as error:
        raise JsonRpcInvalidParams(
            message=f"{INLINE_EDIT} needs textDocument.uri, range and instruction ({error})."
        ) from error
    return EditRequest(uri, start, end, instruction, version, diagnostics)


def path_of(uri: str) -> Path | None:
    """The file of a document, None if it is none."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return None if path is None else Path(path)


def workspace_edit(
    answer: EditAnswer, encoding: PositionEncoding, *, versioned: bool
) -> types.WorkspaceEdit | None:
    """The edit of an answer; ``versioned``: the client understands ``documentChanges``."""
    if answer.selection is None or answer.rewritten is None:
        return None
    snapshot = answer.selection.snapshot

    def position(point: Point) -> types.Position:
        line = snapshot.line(point.line) if point.line < len(snapshot.lines) else ""
        return types.Position(point.line, to_units(line, point.column, encoding))

    edits = [
        types.TextEdit(types.Range(position(edit.start), position(edit.end)), edit.text)
        for edit in answer.edits
    ]
    if not versioned:
        return types.WorkspaceEdit(changes={snapshot.uri: edits})
    document = types.OptionalVersionedTextDocumentIdentifier(uri=snapshot.uri, version=snapshot.version)
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(text_document=document, edits=[*edits])]
    )


def answer_json(answer: EditAnswer, edit: Any) -> dict[str, Any]:
    """As sent; ``edit`` is the ``WorkspaceEdit`` as JSON."""
    rewritten = answer.rewritten
    flags = list(rewritten.flags) if rewritten else []
    return {
        "edit": edit,
        "summary": rewritten.summary if rewritten else "",
        "flags": [flag.value for flag in flags],
        "reason": answer.reason,
        "message": answer.message or "; ".join(FLAG_MESSAGES[flag] for flag in flags),
        "hunks": [_hunk(answer.selection, hunk) for hunk in rewritten.hunks]
        if rewritten and answer.selection
        else [],
        "stats": _stats(answer),
    }


def progress_json(selection: Selection, progress: Progress, sent: int) -> dict[str, Any]:
    """A partial result; ``sent`` hunks were in earlier ones."""
    open = progress.open
    return {
        "hunks": [_hunk(selection, hunk) for hunk in progress.hunks[sent:]],
        "open": None
        if open is None
        else {"startLine": selection.first + open.start, "lines": list(open.lines)},
        "kept": progress.kept,
        "lines": len(selection.lines),
    }


def ranges_of(snapshot: Snapshot, first: int, stop: int, encoding: PositionEncoding) -> types.Range:
    """The range of whole lines, without the line end of the last one."""
    last = snapshot.line(stop - 1)
    return types.Range(
        types.Position(first, 0), types.Position(stop - 1, to_units(last, len(last), encoding))
    )


def _hunk(selection: Selection, hunk: Hunk) -> dict[str, Any]:
    old: Sequence[str] = selection.lines[hunk.start : hunk.stop]
    return {
        "startLine": selection.first + hunk.start,
        "endLine": selection.first + hunk.stop,
        "lines": list(hunk.lines),
        # Characters (code points) of the new lines that the old ones lack.
        "spans": [[span.line, span.start, span.stop] for span in changed_spans(old, hunk.lines)],
    }


def _stats(answer: EditAnswer) -> dict[str, Any]:
    result = answer.result
    if result is None:
        return {}
    return {
        "promptTokens": result.prompt_tokens,
        "cachedTokens": result.cached_tokens,
        "tokens": len(result.token_ids),
        "forwards": result.forwards,
        "drafted": result.drafted,
        "accepted": result.accepted,
        "ms": {"first": round(result.timings.first, 3), "total": round(result.timings.total, 3)},
    }


def _diagnostic(item: Mapping[str, Any]) -> Diagnostic:
    range = item["range"]
    start, end = _point(range["start"]), _point(range.get("end") or range["start"])
    # One that ends at the very start of a line does not touch it.
    last = end.line - 1 if end.column == 0 and end.line > start.line else end.line
    return Diagnostic(start.line, str(item["message"]), last)


def _point(position: Mapping[str, Any]) -> Point:
    line, character = position["line"], position["character"]
    if not isinstance(line, int) or not isinstance(character, int):
        raise TypeError("positions are numbers")
    return Point(line, character)
