"""llama-server as a process and as a decoder."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from bench.peers import llama_server
from bench.peers.base import PeerFailed, Prompt
from bench.peers.exchange import Cancelled, Exchange, PeerTimeout
from bench.peers.llama_decoder import MODES, PLAIN, LlamaDecoder
from bench.peers.llama_server import LlamaServer, speculation_defaults, speculations
from tests.unit.bench.fake_http import Events, FakeHttp, Hang, Raw, fake_http
from tests.unit.bench.fake_llama_server import HELP, event, final, make_program

PROMPT = Prompt((11, 12, 13), "ignored")


@pytest.fixture
def http() -> Iterator[FakeHttp]:
    with fake_http() as server:
        server.answers |= {
            "/props": {"model_path": "/home/somebody/model-q4_k_m.gguf", "model_ftype": "Q4_K"},
            "/slots": [{"speculative": False, "is_processing": False}],
        }
        yield server


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny-q8_0.gguf"
    path.write_bytes(b"GGUF")
    return path


def _attached(http: FakeHttp) -> LlamaDecoder:
    return LlamaDecoder("llama-server", "q4_k_m", lambda speculation: LlamaServer(http.url), ("plain",))


def _decoder(program: Path, model: Path) -> LlamaDecoder:
    return LlamaDecoder(
        "llama-server q8_0",
        "q8_0",
        lambda speculation: LlamaServer(str(program), model, threads=3, context=77, speculation=speculation),
    )


def _children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]


def test_prompts_are_token_ids_decoded_greedily_from_nothing(http: FakeHttp) -> None:
    events = [event(21, 1, 0.001), event(22, 2, 30.0), event(23, 3, 61.0)]
    http.answers["/completion"] = Events([*events, final(events[-1])])
    decoder = _attached(http)
    decoder.start()
    decoded = decoder.decode(PROMPT, "plain", 3, frozenset({99}), ("\n\n",))
    (body,) = http.bodies("/completion")
    wanted = {"prompt": [11, 12, 13], "n_predict": 3, "temperature": 0, "top_k": 1, "stop": ["\n\n"]}
    assert body | wanted | {"cache_prompt": False, "stream": True} == body
    assert decoded.token_ids == (21, 22, 23)
    assert decoded.text == "<21><22><23>"
    assert (decoded.tokens, decoded.prompt_tokens, decoded.cached_tokens) == (3, 3, 0)
    assert (decoded.prompt_ms, decoded.decode_ms) == (20.0, 61.0)
    assert decoded.first_ms > 0
    assert (decoded.forwards, decoded.drafted, decoded.accepted) == (2, 0, 0)
    assert decoded.finish_reason == "limit"


def test_tokens_of_one_forward_count_as_one(http: FakeHttp) -> None:
    events = [
        event(21, 1, 0.001),
        event(22, 2, 40.0, drafted=3, accepted=2),
        event(23, 3, 40.0, drafted=3, accepted=2),
        event(24, 4, 40.0, drafted=3, accepted=2),
        event(25, 5, 70.0, drafted=3, accepted=2),
    ]
    http.answers["/completion"] = Events([*events, final(events[-1], "eos")])
    decoder = LlamaDecoder(
        "llama-server", "q8_0", lambda speculation: LlamaServer(http.url), ("plain", "ngram-simple")
    )
    decoded = decoder.decode(PROMPT, "ngram-simple", 9, frozenset())
    assert (decoded.tokens, decoded.forwards, decoded.drafted, decoded.accepted) == (5, 2, 3, 2)
    assert decoded.finish_reason == "eos"


def test_a_stop_token_that_the_server_does_not_know_ends_the_answer(http: FakeHttp) -> None:
    hang = Hang([event(21, 1, 0.001), event(22, 2, 30.0), event(99, 3, 61.0)])
    http.answers["/completion"] = hang
    decoder = _attached(http)
    decoded = decoder.decode(PROMPT, "plain", 50, frozenset({99}))
    assert hang.closed.wait(5)
    assert decoded.token_ids == (21, 22, 99)
    assert (decoded.tokens, decoded.decode_ms, decoded.text) == (3, 61.0, "<21><22>")
    assert decoded.finish_reason == "stop-token"
    # The next prompt waits until the server has noticed.
    http.answers["/completion"] = Events([event(21, 1, 0.001)])
    http.asked.clear()
    decoder.decode(PROMPT, "plain", 1, frozenset())
    assert [asked.path for asked in http.asked] == ["/slots", "/completion"]


def test_token_ids_are_unknown_if_one_had_no_event(http: FakeHttp) -> None:
    events = [event(21, 1, 0.001), event(23, 3, 61.0)]
    http.answers["/completion"] = Events([*events, final(events[-1])])
    decoded = _attached(http).decode(PROMPT, "plain", 3, frozenset())
    assert (decoded.tokens, decoded.token_ids, decoded.forwards) == (3, (), None)


def test_an_attached_server_that_speculates_is_refused(http: FakeHttp) -> None:
    http.answers["/slots"] = [{"speculative": True}]
    with pytest.raises(PeerFailed, match="no plain decoding"):
        _attached(http).start()


def test_an_attached_server_is_described_without_its_paths(http: FakeHttp) -> None:
    decoder = _attached(http)
    decoder.start()
    facts = decoder.describe()
    assert (facts["model"], facts["numerics"]) == ("model-q4_k_m.gguf", "q4_k_m")
    assert "somebody" not in str(facts)
    assert decoder.usage().cpu_seconds is None
    decoder.stop()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Raw(b"<html>"), "no JSON: '<html>'"),
        (Raw(b"[1]"), "no JSON object"),
        (Raw(b'{"error": {"message": "too long"}}', 400), r"refused the request \(status 400\): too long"),
        (Raw(b"?", 404), "does not exist there"),
    ],
)
def test_wrong_answers_are_named(http: FakeHttp, answer: Raw, words: str) -> None:
    http.answers["/completion"] = answer
    with pytest.raises(PeerFailed, match=words):
        _attached(http).decode(PROMPT, "plain", 3, frozenset())


def test_an_address_where_nobody_listens() -> None:
    with pytest.raises(PeerFailed, match=r"127\.0\.0\.1:9/props cannot be reached"):
        LlamaServer("http://127.0.0.1:9").start()


def test_silence_is_a_timeout(http: FakeHttp) -> None:
    http.answers["/x"] = Hang()
    with pytest.raises(PeerTimeout, match=r"silent for 0\.1 s"):
        Exchange(http.url + "/x", {}, timeout_s=0.1).json()


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_closes_the_connection(http: FakeHttp, streamed: bool) -> None:
    hang = http.answers["/x"] = Hang([{"a": 1}] if streamed else [])
    exchange = Exchange(http.url + "/x", {})
    threading.Timer(0.1, exchange.cancel).start()
    with pytest.raises(Cancelled):
        list(exchange.events()) if streamed else exchange.json()
    assert hang.closed.wait(5)


def test_a_cancelled_exchange_is_not_sent(http: FakeHttp) -> None:
    exchange = Exchange(http.url + "/x", {})
    exchange.cancel()
    with pytest.raises(Cancelled):
        exchange.json()
    assert not http.asked


def test_servers_start_when_their_mode_is_used_and_none_is_left(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.peers.llama_decoder.PAUSE_S", 0.0)
    decoder = _decoder(make_program(tmp_path), model)
    assert decoder.modes == MODES and MODES[0] == PLAIN
    try:
        decoder.start()
        assert len(_children()) == 1
        assert decoder.modes == (PLAIN, "ngram-simple", "ngram-mod")  # the kinds that the program knows
        first = decoder.decode(PROMPT, "ngram-simple", 3, frozenset())
        second = decoder.decode(PROMPT, "ngram-simple", 3, frozenset())
        assert len(_children()) == 2
        # The same process twice: it has decoded 1 prompt, then 2.
        assert (first.token_ids[0], second.token_ids[0]) == (1, 2)
        assert first.token_ids[1] == second.token_ids[1]
        usage = decoder.usage()
        assert usage.cpu_seconds is not None and usage.private_bytes
    finally:
        decoder.stop()
        decoder.stop()
    assert not _children()


def test_kinds_that_remember_other_requests_get_a_new_process_each_time(tmp_path: Path, model: Path) -> None:
    decoder = _decoder(make_program(tmp_path), model)
    try:
        answers = [decoder.decode(PROMPT, "ngram-mod", 3, frozenset()).token_ids for _ in range(2)]
        assert [ids[0] for ids in answers] == [1, 1]
        assert answers[0][1] != answers[1][1]
        assert len(_children()) == 1
    finally:
        decoder.stop()
    assert not _children()


def test_the_command_line_says_everything(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_THREADS", "64")
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    server = LlamaServer(str(make_program(tmp_path)), model, threads=3, context=77, speculation="ngram-mod")
    try:
        server.start()
        facts = server.describe()
    finally:
        server.stop()
    command = facts["build"]  # what the process got
    assert re.search(r"--model \S+/tiny-q8_0.gguf .*--threads 3 --ctx-size 77 .*--parallel 1", command)
    assert "--cache-ram 0" in command and "--spec-type ngram-mod" in command
    assert facts["arguments"] == re.sub(r"\S+/tiny", "tiny", command.partition(" --port")[0]).split()
    assert facts["model_type"] == ""  # no LLAMA_ variable came through
    assert (facts["version"], facts["compiler"]) == ("9.9 (fake)", "Cc 1.2 for Machine")
    assert facts["environment"]["OMP_WAIT_POLICY"] == "PASSIVE"
    assert server.speculation_parameters() == {"n-min": "48"}


def test_a_kind_of_speculation_that_the_program_does_not_know(tmp_path: Path, model: Path) -> None:
    server = LlamaServer(str(make_program(tmp_path)), model, speculation="ngram-cache")
    with pytest.raises(PeerFailed, match="cannot speculate by ngram-cache; it knows none, ngram-simple, ngr"):
        server.speculation_parameters()


def test_help_texts_tell_kinds_and_defaults() -> None:
    assert speculations(HELP) == ["none", "ngram-simple", "ngram-mod"]
    assert speculation_defaults(HELP, "ngram-simple") == {"size-n": "12", "size-m": "48"}
    assert speculations("nothing of the kind") == []


def test_a_program_that_ends_is_quoted(tmp_path: Path, model: Path) -> None:
    script = 'case "$1" in --help) echo --ctx-size;; *) echo loading; echo "bad magic" >&2; exit 3;; esac'
    server = LlamaServer(str(make_program(tmp_path, script)), model)
    with pytest.raises(PeerFailed, match=r"ended with status 3 before it was ready(?s:.*)loading\nbad magic"):
        server.start()
    assert not server.started


def test_a_program_that_is_never_ready_is_ended(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_server, "_START_SECONDS", 1.0)
    script = 'case "$1" in --help) echo --ctx-size;; *) echo still loading; exec sleep 60;; esac'
    server = LlamaServer(str(make_program(tmp_path, script)), model)
    with pytest.raises(PeerFailed, match=r"was not ready after 1 s(?s:.*)still loading"):
        server.start()
    assert not _children()


def test_a_program_that_does_not_obey_is_killed(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_server, "_START_SECONDS", 0.5)
    monkeypatch.setattr("bench.peers.child._STOP_SECONDS", 0.2)
    script = 'case "$1" in --help) echo --ctx-size;; *) trap "" TERM; while :; do sleep 0.05; done;; esac'
    with pytest.raises(PeerFailed, match="not ready"):
        LlamaServer(str(make_program(tmp_path, script)), model).start()
    assert not _children()


def test_a_start_that_is_interrupted_leaves_no_process(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = LlamaServer(str(make_program(tmp_path)), model)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    clock = SimpleNamespace(sleep=interrupted, monotonic=time.monotonic)
    monkeypatch.setattr(llama_server, "time", clock)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    assert not _children()


def test_what_is_no_llama_server(tmp_path: Path, model: Path) -> None:
    with pytest.raises(PeerFailed, match="is no llama-server"):
        LlamaServer(str(make_program(tmp_path, "echo hello")), model).start()
    with pytest.raises(PeerFailed, match="cannot be started"):
        LlamaServer(os.fspath(tmp_path / "nothing"), model).start()
