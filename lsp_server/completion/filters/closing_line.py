"""The brace behind the cursor, where the suggestion puts lines before it."""

from __future__ import annotations

from inference.stops import OPENERS
from lsp_server.completion.filters.context import FilterContext
from lsp_server.completion.filters.suffix_overlap import second_closing
from lsp_server.documents.languages import canonical


def closing_line(text: str, context: FilterContext) -> str | None:
    """Leave the brace that an editor closed behind the cursor on a line of its own.

    The engine ends before that brace, and other ends of an answer say nothing of it. How round and square
    brackets are closed is the model's choice: see ``trailing-space``.
    """
    if not ends_block(text, context) or context.rest.lstrip()[0] != "}":
        return text
    if not text.rpartition("\n")[2].strip() or second_closing(text, "}") is not None:
        return text
    head = context.head
    if canonical(context.language_id) == "go" and not _is_go_block(head) and not text.endswith(","):
        return text  # a line end behind a value would end the statement
    return f"{text}\n{head[: len(head) - len(head.lstrip())]}"


def ends_block(text: str, context: FilterContext) -> bool:
    """Whether the bracket behind the cursor ends the lines that the suggestion puts behind its partner."""
    opener = context.head.rstrip()[-1:]
    return (
        opener in OPENERS
        and context.rest.lstrip().startswith(OPENERS[opener])
        and text.lstrip(" \t").startswith("\n")
    )


def _is_go_block(head: str) -> bool:
    """By its layout, which gofmt decides: no blank stands before the brace of a value."""
    return head.rstrip()[:-1].endswith((" ", "\t"))
