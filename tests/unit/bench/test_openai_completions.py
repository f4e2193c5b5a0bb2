"""Servers with OpenAI's completions, as decoder, editor and filler of gaps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bench.peers.base import PeerFailed, Prompt
from bench.peers.openai_completions import CompletionsApi, OpenAiDecoder
from bench.peers.openai_editor import EDITOR, FIRST_LINE, GapStyle, OpenAiEditor, OpenAiInfill
from tests.unit.bench.fake_http import Events, FakeHttp, Hang, Raw, fake_http

PATH = "/v1/completions"
FIM = "<|fim_prefix|>{}<|fim_suffix|>{}<|fim_middle|>"


@pytest.fixture
def http() -> Iterator[FakeHttp]:
    with fake_http() as server:
        server.answers["/v1/models"] = {"data": [{"id": "/data/models/coder.gguf"}, {"id": "other"}]}
        yield server


def _stream(*texts: str, usage: dict[str, Any] | None = None) -> Events:
    events: list[Any] = [{"choices": [{"text": text, "finish_reason": None}]} for text in texts]
    events.append({"choices": [{"text": "", "finish_reason": "stop"}]})
    if usage is not None:
        events.append({"choices": [], "usage": usage})
    return Events([*events, "[DONE]"])


def _decoder(http: FakeHttp, model: str = "coder") -> OpenAiDecoder:
    return OpenAiDecoder("openai", CompletionsApi(http.url, model))


async def _opened(http: FakeHttp, text: str, style: GapStyle | None = None) -> OpenAiEditor:
    editor = OpenAiEditor("openai", CompletionsApi(http.url, "coder"), style)
    await editor.start()
    await editor.open("a.py", "python", text)
    return editor


def test_a_prompt_is_sent_as_text_and_greedy(http: FakeHttp) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}
    http.answers[PATH] = _stream("a", " + b", usage=usage)
    decoded = _decoder(http).decode(Prompt((1, 2), "say"), "plain", 7, frozenset({3}), ("\n",))
    (body,) = http.bodies(PATH)
    wanted = {"model": "coder", "prompt": "say", "max_tokens": 7, "temperature": 0, "stream": True}
    assert body | wanted | {"stop": ["\n"]} == body
    assert (decoded.text, decoded.token_ids, decoded.finish_reason) == ("a + b", (), "stop")
    assert (decoded.tokens, decoded.prompt_tokens, decoded.cached_tokens) == (5, 9, 2)
    assert decoded.first_ms > 0 and decoded.decode_ms >= 0
    assert (decoded.drafted, decoded.accepted, decoded.forwards) == (None, None, None)


def test_without_usage_chunks_count_as_tokens(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("a", "b", "c")
    decoded = _decoder(http).decode(Prompt((1, 2), "say"), "plain", 7, frozenset())
    assert (decoded.tokens, decoded.prompt_tokens, decoded.cached_tokens) == (3, 2, 0)


def test_an_answer_in_one_piece_is_read_too(http: FakeHttp) -> None:
    http.answers[PATH] = {"choices": [{"text": "all", "finish_reason": "length"}]}
    decoded = _decoder(http).decode(Prompt((), "say"), "plain", 7, frozenset())
    assert (decoded.text, decoded.finish_reason) == ("all", "length")


def test_an_empty_answer_is_one(http: FakeHttp) -> None:
    http.answers[PATH] = _stream()
    decoded = _decoder(http).decode(Prompt((), "say"), "plain", 7, frozenset())
    assert (decoded.text, decoded.tokens, decoded.decode_ms) == ("", 0, 0.0)


def test_the_key_is_sent_and_never_told(http: FakeHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    http.answers[PATH] = _stream("a")
    decoder = _decoder(http)
    decoder.decode(Prompt((), "say"), "plain", 7, frozenset())
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    decoder.decode(Prompt((), "say"), "plain", 7, frozenset())
    without, with_key = http.asked
    assert "Authorization" not in without.headers
    assert with_key.headers["Authorization"] == "Bearer secret-1"
    assert "secret" not in str(decoder.describe()) + str(vars(decoder))
    http.answers[PATH] = Raw(b"{}", 401)
    with pytest.raises(PeerFailed) as failure:
        decoder.decode(Prompt((), "say"), "plain", 7, frozenset())
    assert "secret" not in str(failure.value)


def test_the_first_listed_model_is_used_and_its_path_not_told(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("a")
    decoder = OpenAiDecoder("openai", CompletionsApi(http.url + "/v1/"))
    decoder.start()
    decoder.decode(Prompt((), "say"), "plain", 7, frozenset())
    assert http.bodies(PATH)[0]["model"] == "/data/models/coder.gguf"
    assert decoder.describe()["model"] == "coder.gguf"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Raw(b"?", 404), "does not exist there"),
        (Raw(b"not json"), "no JSON"),
        ({"data": []}, "lists no model"),
        ({"error": "x"}, "lists no model"),
    ],
)
def test_a_start_that_fails_says_why(http: FakeHttp, answer: Any, words: str) -> None:
    http.answers["/v1/models"] = answer
    with pytest.raises(PeerFailed, match=words):
        OpenAiDecoder("openai", CompletionsApi(http.url)).start()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Events([{"error": {"message": "overloaded"}}]), "broke off: .*overloaded"),
        ({"something": "else"}, "neither text nor a finish_reason"),
        (Raw(b'{"error": {"message": "no such model"}}', 400), "no such model"),
    ],
)
def test_a_decode_that_fails_says_why(http: FakeHttp, answer: Any, words: str) -> None:
    http.answers[PATH] = answer
    with pytest.raises(PeerFailed, match=words):
        _decoder(http).decode(Prompt((), "say"), "plain", 7, frozenset())


async def test_the_editor_sends_lines_around_the_cursor(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("y + 1\n", usage={"prompt_tokens": 9, "completion_tokens": 4})
    lines = [f"line {number}" for number in range(400)]
    editor = await _opened(http, "\n".join(lines))
    await editor.change((300, 0), (300, 8), "x = ")
    reply = await editor.ask(300, 4)
    prefix = "\n".join([*lines[44:300], "x = "])
    assert http.bodies(PATH)[0]["prompt"] == FIM.format(prefix, "\n".join(["", *lines[301:365]]))
    assert "stop" not in http.bodies(PATH)[0]
    assert (reply.outcome, reply.text, reply.start, reply.end) == ("shown", "y + 1", 4, 4)
    assert (reply.source, reply.prompt_tokens, reply.tokens) == ("model", 9, 4)
    await editor.stop()


async def test_one_line_where_text_follows(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("a")
    editor = await _opened(http, "f()\nb")
    await editor.ask(0, 2)
    await editor.ask(0, 3)
    assert [body.get("stop") for body in http.bodies(PATH)] == [["\n"], None]
    await editor.stop()


async def test_the_gap_can_be_told_by_the_suffix_parameter(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("a")
    editor = await _opened(http, "f()\nb", GapStyle(suffix_parameter=True))
    await editor.ask(0, 2)
    (body,) = http.bodies(PATH)
    assert (body["prompt"], body["suffix"]) == ("f(", ")\nb")
    await editor.stop()


async def test_control_tokens_are_cut(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("a\n", "<|fim_pad|>b", "<|endoftext|>")
    editor = await _opened(http, "")
    assert (await editor.ask(0, 0)).text == "a"
    http.answers[PATH] = _stream("  \n")
    reply = await editor.ask(0, 0)
    assert (reply.outcome, reply.reason) == ("nothing", "empty")
    await editor.stop()


async def test_a_new_key_cancels_the_request(http: FakeHttp) -> None:
    hang = http.answers[PATH] = Hang([{"choices": [{"text": "a"}]}])
    editor = await _opened(http, "x")
    first = asyncio.ensure_future(editor.ask(0, 1))
    await asyncio.to_thread(http.wait_for, PATH, 1)
    http.answers[PATH] = _stream("b")
    await editor.change((0, 1), (0, 1), "y")
    second = await editor.ask(0, 2)
    assert (await first).outcome == "superseded"
    assert second.text == "b"
    assert await asyncio.to_thread(hang.closed.wait, 5)
    await editor.stop()


async def test_silence_and_errors_are_replies(http: FakeHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.openai_editor.ANSWER_TIMEOUT_S", 0.2)
    hang = http.answers[PATH] = Hang()
    editor = await _opened(http, "x")
    assert (await editor.ask(0, 1)).outcome == "timeout"
    assert await asyncio.to_thread(hang.closed.wait, 5)
    http.answers[PATH] = Raw(b"", 503)
    reply = await editor.ask(0, 1)
    assert reply.outcome == "error" and "status 503" in reply.reason
    await editor.stop()


def test_gaps_are_filled(http: FakeHttp) -> None:
    http.answers[PATH] = _stream("b\nc\n", usage={"completion_tokens": 3})
    infill = OpenAiInfill("openai", CompletionsApi(http.url, "coder"))
    answer = infill.infill("a = ", "\nd", EDITOR)
    assert (answer.text, answer.tokens) == ("b\nc", 3)
    infill.infill("a = ", "\nd", FIRST_LINE)
    infill.infill("f(", ")\nd", EDITOR)
    bodies = http.bodies(PATH)
    assert [body.get("stop") for body in bodies] == [None, ["\n"], ["\n"]]
    assert bodies[0]["prompt"] == FIM.format("a = ", "\nd")
