"""One case through the server's own path, from ``didOpen`` to the accepted text, and what must hold of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from lsprotocol import converters, types

from inference.api import FinishReason, GenerationRequest, GenerationResult, Timings
from inference.stops import StopChecker
from lsp_server.completion.clients import ClientProfile, profile_for
from lsp_server.completion.items import build_result
from lsp_server.completion.pipeline import Suggestion
from lsp_server.completion.reasons import Reason
from lsp_server.completion.service import Answer, CompletionService
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Change, Point
from lsp_server.settings import Settings
from tests.fake_engine import FakeEngine, FakeGeneration
from tests.insertion import applier
from tests.insertion.cases import HUGE_LINE, Case

URI = "file:///work/file"
CLOSERS = ")]}>\"'`"

_converter = converters.get_converter()


class SayingEngine(FakeEngine):
    """Answers at once, in the same thread."""

    def __init__(self, answer: str, stops: bool, meanwhile: Callable[[], None]) -> None:
        super().__init__(answer=answer)
        self._stops = stops
        self._meanwhile = meanwhile
        self.said = answer

    def submit(self, request: GenerationRequest) -> FakeGeneration:
        generation = FakeGeneration(request)
        self.requests.append(request)
        text, reason = self.said, FinishReason.STOP_TOKEN
        if self._stops:
            checker = StopChecker(request.stops)
            reason = checker.push(text) or reason
            if reason is FinishReason.STOP_TOKEN:
                checker.finish()
            text = checker.text
        self._meanwhile()
        generation.future.set_result(GenerationResult(text, (), reason, 0, 0, 0, 0, 0, Timings()))
        return generation


class Outcomes:
    """Counts over many cases."""

    def __init__(self) -> None:
        self.cases = 0
        self.suggested = 0
        self.counts: Counter[str] = Counter()

    def add(self, reasons: list[str], case: Case) -> None:
        self.cases += 1
        self.suggested += reasons[0] == ""
        self.counts.update(f"no suggestion: {reason}" for reason in reasons if reason)
        self.counts[f"client {case.client}"] += 1
        self.counts[f"encoding {case.encoding}"] += 1

    @property
    def share(self) -> float:
        """Of the cases whose first request got a suggestion."""
        return self.suggested / max(1, self.cases)


class Editor:
    """The client's copy of the document, kept by its own arithmetic, and the server's services."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.encoding = case.encoding
        lines = list(case.lines)
        if case.huge:
            filler = lines[-1] or "é😀a"
            lines[-1] = (filler * (HUGE_LINE // len(filler) + 1))[:HUGE_LINE]
        text = ("\ufeff" if case.bom else "") + lines[0]
        for number, line in enumerate(lines[1:]):
            text += case.eols[number % len(case.eols)] + line
        self.text = text
        self.version = 1
        self.store = DocumentStore(case.encoding)  # type: ignore[arg-type]
        self.store.open(URI, 1, case.language, text)
        self.profile: ClientProfile = profile_for(case.client)
        settings = Settings(replace_suffix=case.replace_suffix, max_lines=0)
        self.options = settings.completion_options(self.profile.replaces_rest)
        self.items = 0
        self.change_while_waiting = False
        self.engine = SayingEngine(case.answer, case.stops, self._meanwhile)
        self.engine.start()
        self.service = CompletionService(self.store, lambda: self.engine, lambda: self.engine.status)
        self.service.prefetch.enabled = False  # it would only wait

    def replace(self, start: int, end: int, new: str) -> None:
        """An incremental ``didChange``; an edit does not begin or end inside a line end."""
        start, end = self.outside_eol(start), self.outside_eol(end)
        first = applier.position(self.text, start, self.encoding)
        last = applier.position(self.text, end, self.encoding)
        self.text = applier.apply_edit(self.text, {"start": first, "end": last}, new, self.encoding)
        self.version += 1
        changes = [Change(new, point(first), point(last))]
        self.store.change(URI, self.version, changes)
        self.service.edited(URI, changes)
        assert "".join(self.store.get(URI).snapshot().lines) == self.text, "the server has another text"

    def outside_eol(self, at: int) -> int:
        return at - 1 if self.text[at - 1 : at + 1] == "\r\n" else at

    def eol(self, at: int) -> str:
        """What the editor writes for a new line at ``at``: the end of that line, or of any other."""
        spans = applier.line_spans(self.text)
        ends = [self.text[end:stop] for start, end, stop in spans if start <= at] + ["\n"]
        last = [self.text[end:stop] for start, end, stop in spans if start <= at <= end and stop > end]
        return (last or [end for end in ends if end])[0]

    async def ask(
        self, at: int, beyond: int = 0, popup: tuple[int, int, str] | None = None
    ) -> tuple[Answer, Any]:
        where = applier.position(self.text, at, self.encoding)
        selected = None
        if popup is not None:
            start = applier.position(self.text, popup[0], self.encoding)
            end = applier.position(self.text, popup[1], self.encoding)
            selected = (point(start), point(end), popup[2])
        asked = Point(where["line"], where["character"] + beyond)
        answer = await self.service.complete(URI, asked, self.options, selected=selected)
        result = build_result(answer, self.store.encoding, self.profile, self._next_id)
        message = _converter.unstructure(types.InlineCompletionResponse(1, result))
        return answer, json.loads(json.dumps(message))["result"]

    def _next_id(self, suggestion: Suggestion) -> str:
        self.items += 1
        return str(self.items)

    def _meanwhile(self) -> None:
        if self.change_while_waiting:
            self.change_while_waiting = False
            self.replace(0, 0, "late")


def is_said(added: str, said: str) -> bool:
    """Whether a text is what the model said, but for what closes its brackets, strings and blocks."""
    closing = re.compile(r"(?:[)\]}>\"'`;]|end|fi|done|esac)$")
    while added not in said:
        shorter = closing.sub("", added)
        if shorter == added:
            return False
        added = shorter
    return True


def point(position: dict[str, int]) -> Point:
    return Point(position["line"], position["character"])


def run(case: Case, loop: asyncio.AbstractEventLoop) -> list[str]:
    """Why each of the case's requests got no suggestion, "" where it got one.

    Raises:
        AssertionError: something is, or would be, inserted wrongly.
    """
    return loop.run_until_complete(_run(case))


async def _run(case: Case) -> list[str]:
    editor = Editor(case)
    for edit in case.edits:
        start = len(editor.text) * edit.start // 1000
        editor.replace(start, min(len(editor.text), start + edit.end), edit.text)
    spans = applier.line_spans(editor.text)
    start, end, _ = spans[case.at[0] % len(spans)]
    at = start + case.at[1] % (end - start + 1)
    if case.closing:
        editor.replace(at, at, case.closing)
    start, end, stop = next(span for span in applier.line_spans(editor.text) if span[0] <= at <= span[1])
    beyond = case.beyond if at == end else 0
    below = editor.text[stop:].replace("\r", "\n").partition("\n")[0]
    head, rest = editor.text[start:at], editor.text[at:end]
    said = case.answer.replace("{rest}", rest).replace("{head}", head).replace("{below}", below)
    editor.engine.said = said
    popup = None
    if case.popup is not None:
        before, behind, more = case.popup
        left, right = max(start, at - before), min(end, at + behind)
        popup = (left, right, editor.text[left:at] + more)
    editor.change_while_waiting = case.late
    answer, sent = await editor.ask(at, beyond, popup)
    if case.late and editor.engine.requests:
        assert answer.suggestion is None and sent is None, "an answer for another version"
        assert answer.reason == Reason.STALE or answer.reason != ""
        return [str(getattr(answer.reason, "value", answer.reason))]
    whole = check(editor, at, answer, sent, said, popup)
    reasons = [reason_of(answer)]
    if whole is None or popup is not None or not case.typed:
        return reasons
    assert answer.suggestion is not None
    text = answer.suggestion.text
    typed = text[: min(case.typed, len(text) - 1)]
    for char in typed:
        new = editor.eol(at) if char == "\n" else char
        editor.replace(at, at, new)
        at += len(new)
    again, sent = await editor.ask(at)
    accepted = check(editor, at, again, sent, said, None)
    if again.cached:
        assert accepted == whole, "typing along leads to another text than accepting at once"
    return [*reasons, reason_of(again)]


def reason_of(answer: Answer) -> str:
    return "" if answer.suggestion is not None else str(getattr(answer.reason, "value", answer.reason))


def check(
    editor: Editor, at: int, answer: Answer, sent: Any, said: str, popup: tuple[int, int, str] | None
) -> str | None:
    """The text after accepting the item that was sent, None if there is none."""
    text, encoding, profile = editor.text, editor.encoding, editor.profile
    assert editor.store.version(URI) == editor.version
    if answer.suggestion is None:
        nothing = None if answer.superseded or profile.nothing_is_null else []
        assert sent == nothing and answer.reason, "no suggestion without a reason"
        return None
    assert isinstance(sent, dict) == profile.item_list
    (item,) = applier.items_of(sent)
    assert ("filterText" in item, "command" in item) == (profile.filter_text, profile.command)
    insert = item["insertText"]
    assert isinstance(insert, str) and insert.strip(), "a snippet, or nothing to see"
    assert "\r" not in insert

    # The range: where, and what of the document it takes.
    left, right = item["range"]["start"], item["range"]["end"]
    assert left["line"] == right["line"], "more than one line"
    spans = applier.line_spans(text)
    line = spans[left["line"]]
    for place in (left, right):
        assert place["character"] <= applier.units(text[line[0] : line[1]], len(text), encoding), (
            "behind the line"
        )
    start, end = applier.offset(text, left, encoding), applier.offset(text, right, encoding)
    assert start <= at <= end, "the range does not contain the cursor"
    added = insert
    if popup is not None and "\r" not in popup[2]:
        assert (start, end) == popup[:2], "the popup entry's range must be replaced"
        assert insert.startswith(popup[2]), "the popup entry must be extended"
        added = insert[len(popup[2]) :]
    else:
        assert start == at, "typed text would be replaced"
        covered = "".join(text[at:end].split())
        assert all(char in CLOSERS for char in covered), "more than closing punctuation would be replaced"
        characters = iter(insert)
        assert all(char in characters for char in covered), "punctuation would be lost"
        allowed = profile.replaces_rest if editor.case.replace_suffix is None else editor.case.replace_suffix
        assert allowed or end == at, "this client is not to replace text behind the cursor"

    # The text: a piece of what the model said, but for white space.
    assert not any(0xD800 <= ord(char) <= 0xDFFF or char == "\ufffd" for char in added), "half a character"
    assert is_said("".join(added.split()), "".join(said.split())), "words that nobody said"

    # The result: everything outside of the range is as it was, line ends included.
    eol = editor.eol(at)
    result = applier.accept(text, item, at, encoding, eol)
    assert result == text[:start] + insert.replace("\n", eol) + text[end:]
    above, below = text[: line[0]], text[line[2] :]
    assert result.startswith(above) and result.endswith(text[line[1] :])
    if above[-1:] != "\r" or result[len(above)] != "\n":
        kept = [text[a:c] for a, _, c in spans if a < line[0] or a >= line[2] > line[1]]
        now = [result[a:c] for a, _, c in applier.line_spans(result)]
        number = left["line"]
        assert now[:number] == kept[:number], "lines above have changed"
        tail = len(kept) - number
        assert not tail or now[-tail:] == kept[number:], "lines below have changed"

    # The server, told of the acceptance, has the same text.
    twin = DocumentStore(editor.store.encoding)
    twin.open(URI, 1, "", text)
    twin.change(URI, 2, [Change(insert.replace("\n", eol), point(left), point(right))])
    assert "".join(twin.get(URI).snapshot().lines) == result
    assert below == "" or result.endswith(below)
    return result
