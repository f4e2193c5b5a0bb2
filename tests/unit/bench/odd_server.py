"""A language server that knows the right answer: odd_server.py ORIGINAL right|wrong|slow|silent|error"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

ORIGINAL = Path(sys.argv[1]).read_text(encoding="utf-8")
MODE = sys.argv[2]
SLOW_SECONDS = 0.25

server = LanguageServer("odd", "1")


@server.feature(types.INITIALIZED)
def ready(ls: LanguageServer, params: Any) -> None:
    ls.protocol.notify("draftline/status", {"state": "ready"})


@server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
async def complete(
    ls: LanguageServer, params: types.InlineCompletionParams
) -> list[types.InlineCompletionItem]:
    text = ls.workspace.get_text_document(params.text_document.uri).source
    lines = text.split("\n")
    at = params.position
    before = "\n".join([*lines[: at.line], lines[at.line][: at.character]])
    if MODE == "silent":
        await asyncio.sleep(1000)
    if MODE == "error":
        raise ValueError("no answer from here")
    if MODE == "slow":
        await asyncio.sleep(SLOW_SECONDS)
    rest = ORIGINAL[len(before) : len(before) + len(ORIGINAL) - len(text)]
    return [types.InlineCompletionItem(insert_text="nonsense" if MODE == "wrong" else rest)]


server.start_io()
