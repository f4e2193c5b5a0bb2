"""The stand-in for llama.vim: when it asks, waits, shows and forgets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from bench.peers.base import Reply
from bench.peers.llama_server import LlamaServer
from bench.peers.llama_vim import LlamaVim, VimOptions
from bench.peers.llama_vim_infill import FIRST_LINE, PLUGIN, LlamaVimInfill
from tests.unit.bench.fake_http import FakeHttp, Hang, Held, Raw, fake_http


@pytest.fixture
def http() -> Iterator[FakeHttp]:
    with fake_http() as server:
        server.answers |= {"/props": {"model_path": "m.gguf"}, "/slots": [], "/completion": {"content": ""}}
        yield server


def _answer(content: str) -> dict[str, Any]:
    return {
        "content": content,
        "tokens_evaluated": 100,
        "timings/cache_n": 60,
        "timings/prompt_ms": 12.0,
        "timings/predicted_ms": 30.0,
        "timings/predicted_n": 4,
    }


def _only_first(content: str) -> Callable[[Any], Any]:
    """Answers the place of the cursor; says nothing to what follows a suggestion."""
    return lambda body: _answer(content if body["t_max_predict_ms"] == 250 else "")


async def _opened(http: FakeHttp, text: str, options: VimOptions | None = None) -> LlamaVim:
    editor = LlamaVim("llama-server", LlamaServer(http.url), options)
    await editor.start()
    await editor.open("a.py", "python", text)
    return editor


async def _type(editor: LlamaVim, line: int, column: int, text: str) -> Reply:
    await editor.change((line, column), (line, column), text)
    return await editor.ask(line, column + len(text))


async def _until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def _asked(http: FakeHttp, count: int) -> list[Any]:
    await _until(lambda: len(http.bodies("/infill")) >= count)
    return http.bodies("/infill")


async def test_the_request_and_its_answer(http: FakeHttp) -> None:
    http.answers["/infill"] = _answer("b + 1\n")
    editor = await _opened(http, "def f(b):\n    return \n\nprint(f(1))\n")
    reply = await editor.ask(1, 11)
    body = http.bodies("/infill")[0]
    wanted = {
        "id_slot": 0,
        "input_prefix": "def f(b):\n",
        "prompt": "    return ",
        "input_suffix": "\n\nprint(f(1))\n",
        "input_extra": [],
        "n_predict": 128,
        "n_indent": 4,
        "top_k": 40,
        "top_p": 0.9,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 250,
        "seed": 0,
        "stop": [],
    }
    assert body | wanted == body
    assert (reply.outcome, reply.text, reply.start, reply.end) == ("shown", "b + 1", 11, 11)
    assert (reply.source, reply.first_ms, reply.model_ms) == ("model", 12.0, 42.0)
    assert (reply.prompt_tokens, reply.cached_tokens, reply.tokens) == (100, 60, 4)
    assert reply.ms is not None and reply.ms > 0
    await editor.stop()


async def test_typing_along_needs_no_answer(http: FakeHttp) -> None:
    http.answers["/infill"] = _only_first("value + 1")
    editor = await _opened(http, "x = ")
    await editor.ask(0, 4)
    await _asked(http, 2)  # the second one is for what follows
    http.answers["/infill"] = Hang()
    reply = await _type(editor, 0, 4, "val")
    assert (reply.outcome, reply.source, reply.text) == ("shown", "cache", "ue + 1")
    reply = await _type(editor, 0, 7, "u")
    assert (reply.source, reply.text) == ("cache", "e + 1")
    await editor.stop()


async def test_what_follows_a_shown_suggestion_is_asked_for_and_kept(http: FakeHttp) -> None:
    http.answers["/infill"] = lambda body: _answer(
        "1\ny = 2" if body["t_max_predict_ms"] == 250 else "\nz = 3"
    )
    editor = await _opened(http, "a\nx = \n\nb\n")
    reply = await editor.ask(1, 4)
    assert reply.text == "1\ny = 2"
    bodies = await _asked(http, 2)
    assert bodies[1]["t_max_predict_ms"] == 1000
    assert (bodies[1]["input_prefix"], bodies[1]["prompt"]) == ("a\nx = 1\n", "y = 2")
    assert bodies[1]["input_suffix"] == "\n\nb\n"
    await _until(lambda: editor._running is None)  # its answer is kept
    await editor.change((1, 4), (1, 4), reply.text)
    await editor.accepted(reply, True)
    after = await editor.ask(2, 5)
    assert (after.source, after.text) == ("cache", "\nz = 3")
    await editor.stop()


async def test_no_automatic_request_with_much_text_behind_the_cursor(http: FakeHttp) -> None:
    http.answers["/infill"] = _answer("x")
    editor = await _opened(http, "f(12345678)")
    reply = await editor.ask(0, 2)
    assert (reply.outcome, reply.reason, reply.source) == ("nothing", "max_line_suffix", "none")
    assert not http.bodies("/infill")
    assert (await editor.ask(0, 3)).outcome == "shown"  # 8 are not too many
    await editor.stop()


async def test_a_blank_line_is_asked_for_from_its_first_column(http: FakeHttp) -> None:
    http.answers["/infill"] = _answer("    return 1\n")
    editor = await _opened(http, "def f():\n    ")
    reply = await editor.ask(1, 4)
    assert http.bodies("/infill")[0]["prompt"] == ""
    assert (reply.text, reply.start) == ("return 1", 4)
    await editor.stop()


async def test_an_empty_answer_is_remembered_too(http: FakeHttp) -> None:
    http.answers["/infill"] = _answer("")
    editor = await _opened(http, "x = ")
    first, second = await editor.ask(0, 4), await editor.ask(0, 4)
    assert (first.outcome, first.reason, first.source) == ("nothing", "empty", "model")
    assert (second.outcome, second.reason, second.source) == ("nothing", "empty", "cache")
    assert len(http.bodies("/infill")) == 1
    await editor.stop()


async def test_a_new_request_waits_for_the_running_one(http: FakeHttp) -> None:
    held = http.answers["/infill"] = Held(_answer("wrong"))
    editor = await _opened(http, "x = ")
    first = asyncio.ensure_future(editor.ask(0, 4))
    await _asked(http, 1)
    second = asyncio.ensure_future(_type(editor, 0, 4, "y"))
    assert (await first).outcome == "superseded"
    await asyncio.sleep(0.25)
    assert len(http.bodies("/infill")) == 1
    http.answers["/infill"] = _answer(" + 1")
    held.release.set()
    assert (await second).text == " + 1"
    assert [body["prompt"] for body in http.bodies("/infill")[:2]] == ["x = ", "x = y"]
    await editor.stop()


async def test_a_late_answer_is_shown_if_it_was_typed_along(http: FakeHttp) -> None:
    held = http.answers["/infill"] = Held(_answer("year + 1"))
    editor = await _opened(http, "x = ")
    first = asyncio.ensure_future(editor.ask(0, 4))
    await _asked(http, 1)
    second = asyncio.ensure_future(_type(editor, 0, 4, "y"))
    await asyncio.sleep(0.02)
    http.answers["/infill"] = Hang()
    held.release.set()
    reply = await second
    assert (await first).outcome == "superseded"
    assert (reply.text, reply.source, reply.tokens) == ("ear + 1", "model", 4)
    await editor.stop()


async def test_a_running_request_can_be_cancelled_instead(http: FakeHttp) -> None:
    hang = http.answers["/infill"] = Hang()
    editor = await _opened(http, "x = ", VimOptions(stops_running_request=True))
    first = asyncio.ensure_future(editor.ask(0, 4))
    await _asked(http, 1)
    http.answers["/infill"] = _answer(" + 1")
    reply = await _type(editor, 0, 4, "y")
    assert (await first).outcome == "superseded"
    assert reply.text == " + 1"
    assert await asyncio.to_thread(hang.closed.wait, 5)
    await editor.stop()


@pytest.mark.parametrize(
    ("answer", "words"),
    [(Raw(b"{}", 500), "status 500"), (Raw(b"oops"), "no JSON"), ({"other": 1}, "without content")],
)
async def test_what_goes_wrong_is_an_error_reply(http: FakeHttp, answer: Any, words: str) -> None:
    http.answers["/infill"] = answer
    editor = await _opened(http, "x = ")
    reply = await editor.ask(0, 4)
    assert (reply.outcome, reply.text, reply.source) == ("error", "", "none")
    assert words in reply.reason
    http.answers["/infill"] = _answer("1")
    assert (await editor.ask(0, 4)).outcome == "shown"  # it goes on
    await editor.stop()


async def test_a_server_that_is_gone(http: FakeHttp) -> None:
    editor = await _opened(http, "x = ")
    http.close()
    reply = await editor.ask(0, 4)
    assert reply.outcome == "error" and "cannot be reached" in reply.reason
    await editor.close()
    await editor.stop()


async def test_silence_is_a_timeout(http: FakeHttp) -> None:
    hang = http.answers["/infill"] = Hang()
    editor = await _opened(http, "x = ", VimOptions(answer_timeout_s=0.2))
    reply = await editor.ask(0, 4)
    assert (reply.outcome, reply.ms) == ("timeout", None)
    assert await asyncio.to_thread(hang.closed.wait, 5)
    await editor.stop()


async def _close(editor: LlamaVim) -> None:
    await editor.close()


async def _stop(editor: LlamaVim) -> None:
    await editor.stop()


@pytest.mark.parametrize("end", [_close, _stop])
async def test_the_end_closes_the_connection(
    http: FakeHttp, end: Callable[[LlamaVim], Awaitable[None]]
) -> None:
    hang = http.answers["/infill"] = Hang()
    editor = await _opened(http, "x = ")
    first = asyncio.ensure_future(editor.ask(0, 4))
    await _asked(http, 1)
    await end(editor)
    assert (await first).outcome == "superseded"
    assert await asyncio.to_thread(hang.closed.wait, 5)
    await editor.stop()


async def test_closing_forgets_answers_and_the_servers_tokens(http: FakeHttp) -> None:
    http.answers["/infill"] = _answer("1")
    editor = await _opened(http, "x = ")
    await editor.ask(0, 4)
    await editor.close()
    assert http.bodies("/completion") == [
        {"prompt": " ", "n_predict": 0, "cache_prompt": False, "id_slot": 0}
    ]
    await editor.open("b.py", "python", "x = ")
    assert (await editor.ask(0, 4)).source == "model"
    await editor.stop()


async def test_the_newline_at_the_end_of_a_file_is_no_line(http: FakeHttp) -> None:
    http.answers["/infill"] = _answer("1")
    editor = await _opened(http, "x = \nb\n")
    await editor.ask(0, 4)
    assert http.bodies("/infill")[0]["input_suffix"] == "\nb\n"
    await editor.stop()


async def test_settings_are_described(http: FakeHttp) -> None:
    editor = await _opened(http, "", VimOptions(first_line_only=True, seed=7))
    facts = editor.describe()
    assert facts["editor"] == "llama.vim"
    request = facts["plugin"]["request"]
    assert (request["seed"], request["stop"], request["input_extra"]) == (7, ["\n"], [])
    await editor.stop()


class TestInfill:
    @pytest.fixture
    def infill(self, http: FakeHttp) -> LlamaVimInfill:
        return LlamaVimInfill("llama-server", "q8_0", LlamaServer(http.url))

    def test_a_gap_is_asked_for_without_chance_time_or_cache(
        self, http: FakeHttp, infill: LlamaVimInfill
    ) -> None:
        http.answers["/infill"] = _answer("b + 1\n    \n")
        answer = infill.infill("def f(b):\n    return ", "\n\nf(1)\n", PLUGIN)
        (body,) = http.bodies("/infill")
        assert (body["input_prefix"], body["prompt"]) == ("def f(b):\n", "    return ")
        assert body["input_suffix"] == "\n\nf(1)\n"
        assert (body["samplers"][-1], body["min_p"], body["cache_prompt"]) == ("min_p", 1.0, False)
        assert body["t_max_predict_ms"] == 250
        assert body["stop"] == []
        assert (answer.text, answer.tokens) == ("b + 1\n    ", 4)
        assert answer.ms > 0

    def test_the_first_line_alone(self, http: FakeHttp, infill: LlamaVimInfill) -> None:
        http.answers["/infill"] = _answer("    return 1")
        assert infill.infill("def f():\n", "\nf()\n", FIRST_LINE).text == "    return 1"
        assert http.bodies("/infill")[0]["stop"] == ["\n"]

    def test_what_repeats_the_next_line_is_dropped(self, http: FakeHttp, infill: LlamaVimInfill) -> None:
        http.answers["/infill"] = _answer("f(1)")
        assert infill.infill("\n", "\nf(1)\n", PLUGIN).text == ""

    def test_blanks_that_stand_there_stay(self, http: FakeHttp, infill: LlamaVimInfill) -> None:
        http.answers["/infill"] = _answer("  y")
        assert infill.infill("if x:\n    ", "\n", PLUGIN).text == "y"

    def test_it_describes_server_and_request(self, http: FakeHttp, infill: LlamaVimInfill) -> None:
        infill.start()
        facts = infill.describe()
        assert (facts["numerics"], facts["model"]) == ("q8_0", "m.gguf")
        infill.stop()
