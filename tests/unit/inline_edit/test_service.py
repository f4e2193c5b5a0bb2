"""Edits with an engine that says what it is told to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference.api import EngineState, EngineStatus
from inference.errors import QueueFull
from lsp_server.completion.reasons import Reason
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Change, Point
from lsp_server.inline_edit.context import Diagnostic
from lsp_server.inline_edit.reasons import Flag
from lsp_server.inline_edit.rewrite import Progress
from lsp_server.inline_edit.service import EditAnswer, EditOptions, EditRequest, EditService
from tests.fake_engine import FakeEngine, Pace

URI = "file:///work/x.py"
TEXT = """\
import os

class A:
    def f(self):
        x = 1
        return x

    def g(self):
        pass
"""
SHOWN = "def f(self):\n    x = 1\n    return x\n"
ANSWER = "def f(self):\n    y = 1\n    return y\n```"


class Bench:
    """A service over one open document."""

    def __init__(self, engine: FakeEngine | None = None, text: str = TEXT, *, start: bool = True) -> None:
        self.engine = engine or FakeEngine(answer=ANSWER)
        self.store = DocumentStore()
        self.store.open(URI, 1, "python", text)
        self.service = EditService(self.store, lambda: self.engine, lambda: self.engine.status)
        if start:
            self.engine.start()

    def request(
        self, first: int = 3, stop: int = 6, instruction: str = "Rename x to y.", **more: Any
    ) -> EditRequest:
        return EditRequest(URI, Point(first, 0), Point(stop, 0), instruction, **more)

    async def ask(
        self,
        request: EditRequest | None = None,
        show: Callable[[Progress], None] = lambda progress: None,
        **more: Any,
    ) -> EditAnswer:
        return await self.service.edit(
            request or self.request(), EditOptions(), lambda selection, progress: show(progress), **more
        )

    def applied(self, answer: EditAnswer) -> str:
        for edit in reversed(answer.edits):
            self.store.change(URI, 2, [Change(edit.text, edit.start, edit.end)])
        return "".join(self.store.get(URI).snapshot().lines)


async def test_an_edit() -> None:
    bench = Bench()
    seen: list[Progress] = []
    answer = await bench.ask(show=seen.append)
    assert answer.reason == "" and answer.rewritten is not None and answer.rewritten.flags == ()
    assert answer.rewritten.summary == "2 lines added, 2 lines removed"
    assert bench.applied(answer) == TEXT.replace("x = 1", "y = 1").replace("return x", "return y")
    assert seen
    request = bench.engine.requests[0]
    assert request.document == f"{URI}#edit"
    assert request.stops.strings == ("\n```",)
    first, stop = request.source_hint or (0, 0)
    assert bench.engine.codec.decode(list(request.prompt[first:stop])) == SHOWN


async def test_the_prompt_shows_imports_scopes_and_problems_and_ends_in_an_open_fence() -> None:
    bench = Bench()
    await bench.ask(bench.request(diagnostics=(Diagnostic(4, "x is\nunused"), Diagnostic(8, "elsewhere"))))
    shown = bench.engine.codec.show(bench.engine.requests[0].prompt)
    assert "import os\nclass A:\n```\n" in shown
    assert "Problems reported:\n- line 2: x is unused\n" in shown and "elsewhere" not in shown
    assert shown.endswith("<|im_end|>\n<|im_start|>assistant\n```python\n")
    assert shown.index("return x") < shown.index("Rename x to y.")


async def test_what_precedes_the_instruction_is_read_while_it_is_typed() -> None:
    bench = Bench()
    assert await bench.service.warm_up(bench.request(instruction=""))
    await bench.ask()
    warm, edit = bench.engine.requests
    assert edit.prompt[: len(warm.prompt)] == warm.prompt
    assert len(warm.prompt) > (edit.source_hint or (0, 0))[1]
    assert warm.document == edit.document and warm.max_new_tokens == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"instruction": "  "}, "no-instruction"),
        ({"first": 6, "stop": 7}, "empty-selection"),
        ({"first": 3, "stop": 3}, "empty-selection"),
        ({"version": 7}, "stale"),
    ],
)
async def test_refusals(change: dict[str, Any], reason: str) -> None:
    bench = Bench()
    version = change.pop("version", None)
    answer = await bench.ask(bench.request(**change, version=version))
    assert answer.reason == reason and answer.message and answer.edits == ()
    assert not bench.engine.requests


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (SHOWN + "```", "unchanged"),
        ("Sure, I cannot help with that.", "no-code"),
        ("", "no-code"),
    ],
)
async def test_answers_without_an_edit(said: str, reason: str) -> None:
    answer = await Bench(
        FakeEngine(answer=said if reason == "unchanged" or not said else "Sure, " + said)
    ).ask()
    assert answer.reason == reason and answer.message and answer.edits == ()


@pytest.mark.parametrize(
    ("said", "flag"),
    [("def f(self):\n    y = (1\n    return y\n```", Flag.PARSE_ERROR), ("y()\n" * 9, Flag.REPEATS)],
)
async def test_doubtful_answers_are_flagged(said: str, flag: Flag) -> None:
    answer = await Bench(FakeEngine(answer=said)).ask()
    assert answer.rewritten is not None and flag in answer.rewritten.flags


async def test_an_answer_that_is_cut_off_is_flagged_and_its_broken_line_left_out() -> None:
    long = "def f(self):\n" + "".join(f"    call_{number}()\n" for number in range(200))
    answer = await Bench(FakeEngine(answer=long)).ask()
    assert answer.rewritten is not None and Flag.TRUNCATED in answer.rewritten.flags


async def test_a_selection_within_lines_leaves_what_is_around_it() -> None:
    text = "value = compute(first) + other(second)\n"
    request = EditRequest(URI, Point(0, 8), Point(0, 22), "Say it otherwise.")
    kept = await Bench(FakeEngine(answer="value = sum(first) + other(second)\n```"), text).ask(request)
    assert kept.reason == ""
    lost = await Bench(FakeEngine(answer="value = sum(first)\n```"), text).ask(request)
    assert lost.reason == "outside-selection"


async def test_documents_that_must_not_be_edited(tmp_path: Path) -> None:
    bench = Bench()
    assert (await bench.ask(allowed=lambda snapshot: Reason.EXCLUDED)).reason == "excluded"
    assert (await bench.ask(allowed=lambda snapshot: Reason.DISABLED)).reason == "disabled"
    other = EditRequest("file:///elsewhere", Point(0, 0), Point(1, 0), "x")
    assert (await bench.ask(other)).reason == "unknown-document"
    bench.store.open("file:///secret", 1, "python", "x", excluded=True)
    assert (
        await bench.ask(EditRequest("file:///secret", Point(0, 0), Point(1, 0), "x"))
    ).reason == "excluded"
    file = tmp_path / "x.py"
    file.write_text("x")
    file.chmod(0o444)
    if not os.access(file, os.W_OK):  # the superuser may write all the same
        assert (await bench.ask(bench.request(path=file))).reason == "read-only"


async def test_a_selection_over_the_context_is_refused_with_numbers() -> None:
    bench = Bench(FakeEngine(answer=ANSWER, context=300))
    answer = await bench.ask()
    assert answer.reason == "selection-too-long" and "300" in answer.message
    assert not bench.engine.requests


async def test_cancelling_stops_the_engine() -> None:
    bench = Bench(FakeEngine(answer=ANSWER * 20, step_seconds=0.01))
    task = asyncio.ensure_future(bench.ask())
    while not bench.engine.generations:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = await asyncio.wrap_future(bench.engine.generations[0].future)
    assert result.finish_reason.value == "cancelled"


async def test_a_change_meanwhile_makes_the_edit_stale() -> None:
    bench = Bench(FakeEngine(answer=ANSWER, step_seconds=0.002))
    task = asyncio.ensure_future(bench.ask())
    while not bench.engine.generations:
        await asyncio.sleep(0.005)
    bench.store.change(URI, 2, [Change("# ", Point(0, 0), Point(0, 0))])
    answer = await task
    assert answer.reason == "stale" and answer.edits == ()


async def test_a_newer_edit_of_the_document_ends_the_older_one() -> None:
    bench = Bench(FakeEngine(answer=ANSWER, step_seconds=0.005))
    first = asyncio.ensure_future(bench.ask())
    while not bench.engine.generations:
        await asyncio.sleep(0.005)
    second = await bench.ask(bench.request(instruction="Another."))
    assert second.reason == "" and (await first).reason == "cancelled"


async def test_typing_the_next_instruction_does_not_end_an_edit_that_runs() -> None:
    bench = Bench(FakeEngine(answer=ANSWER, pace=(pace := Pace())))
    edit = asyncio.ensure_future(bench.ask())
    while not bench.engine.generations:
        await asyncio.sleep(0.005)
    assert not await bench.service.warm_up(bench.request(instruction=""))
    pace.allow(2 * len(ANSWER))
    assert (await edit).reason == ""
    assert await bench.service.warm_up(bench.request(instruction=""))


async def test_the_engine_s_state_and_refusals() -> None:
    loading = FakeEngine(load_seconds=5)
    bench = Bench(loading, start=False)
    loading._status = EngineStatus(EngineState.LOADING, "Reading")
    assert (await bench.ask()).reason == "loading"
    loading._status = EngineStatus(EngineState.FAILED, "No weights")
    assert (await bench.ask()).message == "No weights"
    loading._status = EngineStatus(EngineState.STOPPED)
    assert (await bench.ask()).reason == "stopped"
    full = Bench()

    def refuse(request: object) -> Any:
        raise QueueFull("32 requests are waiting already.", "Ask again.")

    full.engine.submit = refuse  # type: ignore[method-assign]
    assert (await full.ask()).reason == "queue-full"


async def test_line_ends_and_tabs_of_the_document() -> None:
    text = "class A:\r\n\tdef f(self):\r\n\t\tx = 1\r\n\t\treturn x\r\n"
    bench = Bench(FakeEngine(answer="def f(self):\n    y = 1\n    z = 2\n    return y\n```"), text)
    answer = await bench.ask(EditRequest(URI, Point(1, 0), Point(3, 99), "Rename."))
    assert bench.applied(answer) == "class A:\r\n\tdef f(self):\r\n\t\ty = 1\r\n\t\tz = 2\r\n\t\treturn y\r\n"


KEY = "AKIA" + "IOSFODNN7QRSTUVW"
CONFIG = f'def connect():\n    key = "{KEY}"\n    tries = 3\n    return open_it(key, tries)\n'
HIDDEN = CONFIG.replace(KEY, "x" * len(KEY))


async def test_a_line_with_a_secret_stays_as_it_is_under_an_edit_of_others() -> None:
    bench = Bench(FakeEngine(answer=HIDDEN.replace("tries = 3", "tries = 5") + "```"), CONFIG)
    answer = await bench.ask(bench.request(0, 4))
    assert answer.reason == "" and KEY not in bench.engine.codec.show(bench.engine.requests[0].prompt)
    for edit in reversed(answer.edits):
        bench.store.change(URI, 2, [Change(edit.text, edit.start, edit.end)])
    assert "".join(bench.store.get(URI)._lines) == CONFIG.replace("tries = 3", "tries = 5")


@pytest.mark.parametrize(
    "said",
    [
        HIDDEN.replace("key", "secret_key"),
        "def connect():\n    tries = 3\n    return open_it(KEY, tries)\n",
    ],
)
async def test_an_edit_of_a_line_with_a_secret_is_refused_and_never_shown(said: str) -> None:
    bench = Bench(FakeEngine(answer=said + "```" + "\nmore" * 50, step_seconds=0.001), CONFIG)
    seen: list[Progress] = []
    answer = await bench.ask(bench.request(0, 4), show=seen.append)
    assert answer.reason == "secret" and answer.message and answer.edits == ()
    assert not bench.engine.generations[0].future.result().text.endswith("more")
    hunks = [hunk for progress in seen for hunk in progress.hunks]
    assert all(not hunk.start <= 1 < hunk.stop for hunk in hunks)
    assert all(progress.open is None or progress.open.start != 1 for progress in seen)


async def test_a_secret_that_a_diagnostic_quotes_is_not_shown() -> None:
    bench = Bench()
    await bench.ask(bench.request(diagnostics=(Diagnostic(4, f"hard-coded key {KEY}"),)))
    shown = bench.engine.codec.show(bench.engine.requests[0].prompt)
    assert "hard-coded key" in shown and KEY not in shown


async def test_a_huge_line_is_refused_before_its_tokens_are_counted() -> None:
    engine = FakeEngine(answer=ANSWER)
    bench = Bench(engine, "x = [" + "1, " * 400_000 + "]\n")
    encoded: list[str] = []
    encode = engine.codec.encode
    engine.codec.encode = lambda text: encoded.append(text) or encode(text)  # type: ignore[method-assign,func-returns-value]
    answer = await bench.ask(bench.request(0, 1))
    assert answer.reason == "selection-too-long" and "1200020 characters" in answer.message
    assert not encoded
