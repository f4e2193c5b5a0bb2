"""The language server's own request for an edit, and the simplest reading of an answer to it."""

from __future__ import annotations

from inference.api import TextCodec
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.layout import Layout
from lsp_server.inline_edit.prompt import END, START, EditPrompt, answer_limit
from lsp_server.inline_edit.prompt import edit_prompt as prompt_for
from lsp_server.inline_edit.selection import Selection

LANGUAGE = "python"
# The same for all tasks, so that they share one KV slot.
_URI = "edit.py"


def selection_of(code: str) -> Selection:
    """All of a task's code, selected in a document that holds nothing else."""
    snapshot = Snapshot.of(code, _URI, language_id=LANGUAGE)
    last = len(snapshot.lines) - 1
    return Selection.of(snapshot, Point(0, 0), Point(last, len(snapshot.line(last))))


def edit_prompt(codec: TextCodec, instruction: str, code: str) -> EditPrompt:
    """The request for an edit, up to where the code of the answer begins."""
    selection = selection_of(code)
    shown = Layout.of(selection.lines).shown(selection.lines)
    return prompt_for(codec, instruction, shown, LANGUAGE)


def prompt_text(codec: TextCodec, ids: tuple[int, ...]) -> str:
    """The same request as text, for systems with another vocabulary."""
    turns = {codec.special(spelling): spelling for spelling in (START, END)}
    parts: list[str] = []
    plain: list[int] = []
    for id in ids:
        if id in turns:
            parts += (codec.decode(plain), turns[id])
            plain = []
        else:
            plain.append(id)
    return "".join((*parts, codec.decode(plain)))


def edit_limit(prompt: EditPrompt) -> int:
    """Tokens that the answer may take."""
    return answer_limit(prompt.source[1] - prompt.source[0])


def cut_at_fence(text: str, fence: str) -> str:
    """An answer up to the line that closes the fence which its prompt opened."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith(fence):
            return "\n".join(lines[:number])
    return text.removesuffix("\n")
