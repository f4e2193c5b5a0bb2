"""The lines of an answer that are certain while the model is still writing the rest."""

from __future__ import annotations

from inference.api import FinishReason, GenerationResult, Timings
from lsp_server.completion.filters.closing_line import closing_line
from lsp_server.completion.filters.repetition import MAX_PERIOD
from lsp_server.completion.pipeline import Prepared, Suggestion, finish, place
from lsp_server.completion.reasons import NoSuggestion


def complete_lines(prepared: Prepared, settled: str) -> Suggestion | None:
    """The suggestion in the whole lines of ``settled``; None if there is none yet, or for a popup entry.

    ``settled`` is what the engine will not take back. The filters judge it as an answer of its own; what
    they might judge otherwise once more lines are there is held back, so that the suggestion is a prefix
    of that for the finished answer, but for white space at its end.
    """
    text = settled.replace("\r\n", "\n").replace("\r", "\n")
    whole, newline, _ = text.rpartition("\n")
    if not newline or prepared.selected is not None:
        return None
    head = prepared.filters.head
    found = suggestion_in(prepared, _without_repeats(whole.rstrip(), head))
    if found is None:
        return None
    # Once more: the filters may have moved lines to where they are alike.
    kept = _without_repeats(_as_written(found.text, whole), head)
    if not kept.strip():
        return None
    if "closing-line" not in prepared.filters.off:
        kept = closing_line(kept, prepared.filters) or kept
    return place(prepared.cursor, prepared.filters, kept)


def suggestion_in(prepared: Prepared, text: str) -> Suggestion | None:
    """The suggestion if ``text`` were the model's answer, None if a filter drops it."""
    if not text.strip():
        return None
    result = GenerationResult(text, (), FinishReason.STOP_TOKEN, 0, 0, 0, 0, 0, Timings())
    try:
        return finish(prepared, result)
    except NoSuggestion:
        return None


def _as_written(text: str, written: str) -> str:
    """``text`` up to the first line that is not one of ``written``.

    A filter closes what an answer leaves open; here that is what the model has still to write.
    """
    if written.startswith(text):
        return text
    lines = text.split("\n")
    following = iter([line.strip() for line in written.split("\n")])
    for number, line in enumerate(map(str.strip, lines)):
        if not any(other == line or (line and other.startswith(line)) for other in following):
            return "\n".join(lines[:number]).rstrip()
    return text


def _without_repeats(text: str, head: str) -> str:
    """Up to the first line that repeats one of the few before it.

    It may be the second round of a loop, of which the filter ``repetition`` keeps only the first.
    """
    lines = text.split("\n")
    whole = [head + lines[0], *lines[1:]]
    for at, line in enumerate(whole):
        if any(map(str.isalnum, line)) and line in whole[max(0, at - MAX_PERIOD) : at]:
            del lines[at:]
            # Brackets and blank lines before it may belong to that round already.
            while lines and not any(map(str.isalnum, lines[-1])):
                lines.pop()
            break
    return "\n".join(lines).rstrip()
