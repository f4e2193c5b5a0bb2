"""A real server process over stdio, with an engine that says what it is told to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import ROOT, Client, RequestFailed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

URI = "file:///work/project/main.py"


def insert(answer: Any) -> str:
    assert answer, answer
    return str(answer[0]["insertText"])


async def test_a_whole_session(start: Any, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    client: Client = await start(answer="return 1")
    await client.initialize()
    with capsys.disabled():
        print(f"\ninitialize answered {time.monotonic() - began:.3f} s after the process was started")
    capabilities = client.result["capabilities"]
    assert capabilities["positionEncoding"] == "utf-8"
    assert capabilities["textDocumentSync"]["change"] == 2
    assert "inlineCompletionProvider" in capabilities
    commands = capabilities["executeCommandProvider"]["commands"]
    assert all(command.startswith("draftline.server.") for command in commands)
    await client.ready()

    client.open(URI, "def f():\n    \n")
    for column, char in enumerate("x = 1 + 22"):
        client.change(URI, char, (1, 4 + column))
    answer = await client.complete(URI, 1, 14)
    (item,) = answer
    assert item["insertText"] == item["filterText"] == "return 1"
    assert item["range"] == {"start": {"line": 1, "character": 14}, "end": {"line": 1, "character": 14}}
    assert item["command"]["command"] == "draftline.server.accepted"
    executed = {"command": item["command"]["command"], "arguments": item["command"]["arguments"]}
    assert await client.request("workspace/executeCommand", executed) is None
    client.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    client.close(URI)
    assert await client.complete(URI, 1, 14) == []
    await client.status(lambda params: params["reason"] == "unknown-document" and params["uri"] == URI)
    assert await client.shutdown() == 0
    assert client.violations == []


async def test_first_lines_come_early_and_their_growth_is_told(start: Any) -> None:
    answer = "for a in b:\n        use(a)\n    return a"
    client: Client = await start(answer=answer, step_seconds=0.03)
    await client.initialize(options={"client": "vscode"})
    await client.ready()
    client.open(URI, "def f():\n    ")
    assert insert(await client.ask(URI, 1, 4, automatic=True)[1]) == "for a in b:"
    await client.notification("draftline/grown", lambda params: params == {"uri": URI, "version": 1})
    assert insert(await client.ask(URI, 1, 4, automatic=True)[1]) == answer


async def test_loading_is_answered_empty_and_shown_as_progress(start: Any) -> None:
    client: Client = await start(answer="x", load_seconds=1)
    capabilities = {"window": {"workDoneProgress": True}}
    await client.initialize(capabilities=capabilities)
    assert client.result["capabilities"]["positionEncoding"] == "utf-16"
    client.open(URI, "a")
    assert await client.complete(URI, 0, 1) == []
    await client.status(lambda params: params["reason"] == "loading")
    await client.ready()
    assert ("window/workDoneProgress/create", {"token": "draftline-load-1"}) in client.requests
    await client.notification("$/progress", lambda params: params["value"]["kind"] == "end")
    values = [params["value"] for name, params in client.notifications if name == "$/progress"]
    assert values[0]["kind"] == "begin"
    assert any(value["kind"] == "report" and value["percentage"] == 50 for value in values)
    assert insert(await client.complete(URI, 0, 1)) == "x"
    await client.status(lambda params: params["state"] == "ready" and not params["reason"])


async def test_cancel_supersede_and_unordered_messages(start: Any) -> None:
    client: Client = await start(answer="a" * 200, step_seconds=0.02)
    await client.initialize()
    await client.ready()
    client.open(URI, "x = ")
    id, pending = client.ask(URI, 0, 4)
    await asyncio.sleep(0.1)
    client.cancel(id)
    with pytest.raises(RequestFailed) as caught:
        await asyncio.wait_for(pending, 5)
    assert caught.value.code == -32800
    await client.status(lambda params: params["reason"] == "cancelled")

    _, old = client.ask(URI, 0, 4)
    await asyncio.sleep(0.05)
    client.change(URI, "b", (0, 4))
    id, _ = client.ask(URI, 0, 5)
    assert await asyncio.wait_for(old, 5) is None
    await client.status(lambda params: params["reason"] == "superseded")
    client.cancel(id)
    client.cancel(9999)
    assert await client.shutdown() == 0


async def test_a_request_sees_the_text_of_its_arrival(start: Any) -> None:
    client: Client = await start(answer="tail")
    await client.initialize()
    await client.ready()
    client.open(URI, "")
    pending = []
    for column, char in enumerate("abcdefgh"):
        client.change(URI, char, (0, column))
        pending.append(client.ask(URI, 0, column + 1)[1])
    answers = await asyncio.gather(*pending)
    assert insert(answers[-1]) == "tail"
    for column, answer in enumerate(answers[:-1]):
        assert answer is None or answer[0]["range"]["start"]["character"] == column + 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_nothing_before_the_cursor_shifts_the_insertion(start: Any, encoding: str) -> None:
    client: Client = await start(answer="end")
    await client.initialize(capabilities={"general": {"positionEncodings": [encoding]}})
    await client.ready()
    width = {
        "utf-8": lambda text: len(text.encode()),
        "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    }
    for number, line in enumerate(["😀 = '𝒳é'", "\tx\t=", "a\x0cb", "a\u2028b\u2029c\x85d", "plain"]):
        uri = f"{URI}.{number}.py"
        client.open(uri, f"first\x0c\r\n{line}\r\nlast")
        column = width.get(encoding, len)(line)
        client.change(uri, "!", (1, column))
        (item,) = await client.complete(uri, 1, column + 1)
        at = {"line": 1, "character": column + 1}
        assert item["range"] == {"start": at, "end": at}
        assert item["insertText"] == "end"
    assert await client.shutdown() == 0


async def test_empty_and_huge_documents_answer(start: Any) -> None:
    client: Client = await start(answer="x")
    await client.initialize()
    await client.ready()
    client.open(URI, "")
    assert await client.complete(URI, 0, 0) == []
    await client.status(lambda params: params["reason"] == "empty")
    client.change(URI, "#", (0, 0))
    assert insert(await client.complete(URI, 99, 99)) == "x"
    huge = f"{URI}2"
    client.open(huge, "value = compute(1)\n" * 110_000)
    for column, char in enumerate("typed"):
        client.change(huge, char, (55_000, column))
    assert insert(await client.complete(huge, 55_000, 5)) == "x"
    line = f"{URI}3"
    client.open(line, "é" * 2_000_000)
    assert insert(await client.complete(line, 0, 2_000_001)) == "x"
    larger = f"{URI}4"
    client.open(larger, "x" * (17 * 1024 * 1024))
    client.change(larger, "y", (0, 1_000_000))
    assert insert(await client.complete(larger, 0, 1_000_001)) == "x"
    assert await client.shutdown() == 0


async def test_a_trace_tells_what_each_answer_cost(start: Any) -> None:
    client: Client = await start(answer="return value + 1")
    await client.initialize()
    await client.ready()
    client.open(URI, "def f(value):\n    \n")
    assert insert(await client.complete(URI, 1, 4)) == "return value + 1"
    assert not [name for name, _ in client.notifications if name == "draftline/trace"], "off until asked for"
    client.notify("$/setTrace", {"value": "messages"})
    client.change(URI, "r", (1, 4))
    assert insert(await client.complete(URI, 1, 5)) == "eturn value + 1"
    client.change(URI, "x", (1, 5))
    await client.complete(URI, 1, 6)
    traces = [params for name, params in client.notifications if name == "draftline/trace"]
    assert [trace["source"] for trace in traces] == ["cache", "model"]
    assert [trace["version"] for trace in traces] == [2, 3]
    assert "promptTokens" not in traces[0]
    assert traces[1]["promptTokens"] > 10 and traces[1]["tokens"] > 0
    assert set(traces[1]["ms"]) == {"queue", "prompt", "first", "total"}
    client.notify("$/setTrace", {"value": "off"})
    client.change(URI, "y", (1, 6))
    await client.complete(URI, 1, 7)
    assert len([name for name, _ in client.notifications if name == "draftline/trace"]) == 2


async def test_use_is_counted_on_this_machine(start: Any, tmp_path: Path) -> None:
    for restarted in (False, True):
        client: Client = await start(answer="return 1")
        await client.initialize(options={"prefetch": False})
        await client.ready()
        client.open(URI, "def f():\n    \n")
        (item,) = await client.complete(URI, 1, 4)
        client.change(URI, item["insertText"], (1, 4))
        executed = {"command": item["command"]["command"], "arguments": item["command"]["arguments"]}
        await client.request("workspace/executeCommand", executed)
        assert await client.request("draftline/statistics", {}) == await client.request(
            "draftline/statistics"
        )
        use = await client.request("draftline/statistics")
        assert use["counts"]["requests"] == use["counts"]["shown"] == 1 + restarted
        assert use["counts"]["acceptedWhole"] == 1 + restarted, "the edit and the command are one acceptance"
        assert use["counts"]["charactersAccepted"] == 8 * (1 + restarted)
        assert use["sources"] == {"model": 1 + restarted}
        assert use["latencyMs"]["p95"] >= use["latencyMs"]["p50"] >= 0
        assert await client.shutdown() == 0
    stored = (tmp_path / "home" / "statistics.json").read_text()
    assert "return" not in stored and "project" not in stored


async def test_asking_by_hand_brings_a_list_and_a_key_one_item(start: Any) -> None:
    client: Client = await start(answer="a\nb")
    await client.initialize(options={"candidates": 5})
    await client.ready()
    client.open(URI, "x = ")
    for automatic in (True, False):
        _, pending = client.ask(URI, 0, 4, automatic=automatic)
        answer = await asyncio.wait_for(pending, 20)
        assert [item["insertText"] for item in answer] == ["a\nb"], "equal candidates are one"


async def test_items_are_as_the_client_needs_them(start: Any) -> None:
    expected = {"IntelliJ IDEA 2026.1": {"insertText", "range"}, "Neovim": {"insertText", "range", "command"}}
    for name, keys in expected.items():
        client: Client = await start(answer="x")
        await client.initialize(name=name)
        await client.ready()
        client.open(URI, "a")
        (item,) = await client.complete(URI, 0, 1)
        assert set(item) == keys
    client = await start(answer="x")
    await client.initialize(name="Neovim", options={"draftline": {"client": "emacs"}})
    await client.ready()
    client.open(URI, "a")
    answer = await client.complete(URI, 0, 1)
    assert insert(answer["items"]) == "x"
    client.close(URI)
    assert await client.complete(URI, 0, 1) is None


async def test_excluded_files_get_nothing(start: Any, tmp_path: Path) -> None:
    (tmp_path / ".draftlineignore").write_text("private/\n")
    client: Client = await start(answer="x")
    await client.initialize(root=tmp_path)
    await client.ready()
    for name in (".env", "private/a.py"):
        uri = (tmp_path / name).as_uri()
        client.open(uri, "SECRET = 1")
        client.change(uri, "2", (0, 10))
        assert await client.complete(uri, 0, 3) == []
        await client.status(lambda params, uri=uri: params["reason"] == "excluded" and params["uri"] == uri)
    uri = (tmp_path / "main.py").as_uri()
    client.open(uri, "x")
    assert insert(await client.complete(uri, 0, 1)) == "x"
    (tmp_path / ".draftlineignore").write_text("private/\nmain.py\n")
    assert await client.complete(uri, 0, 1) == []


async def test_settings(start: Any) -> None:
    client: Client = await start(answer="x\ny\nz")
    client.configuration = {"maxLines": 3, "numerics": "int4", "disabledLanguages": ["go"]}
    workspace = {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}
    await client.initialize(capabilities={"workspace": workspace}, options={"enable": False, "maxLines": 7})
    shown = await client.notification("window/showMessage")
    assert shown["type"] == 2
    assert "draftline.numerics must be one of int8, nf4" in shown["message"]
    assert any(name == "client/registerCapability" for name, _ in client.requests)
    client.open(URI, "a")
    assert await client.complete(URI, 0, 1) == []
    disabled = await client.status(lambda params: params["reason"] == "disabled")
    assert disabled["state"] == "starting", "nothing is loaded while suggestions are switched off"

    client.configuration = {"enable": True, "disabledLanguages": ["go"]}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.ready()
    while not (answer := await client.complete(URI, 0, 1)):
        await asyncio.sleep(0.02)
    assert insert(answer) == "x\ny\nz"
    client.open(URI + ".go", "a", "go")
    assert await client.complete(URI + ".go", 0, 1) == []
    statuses = [params for name, params in client.notifications if name == "draftline/status"]
    starts = sum(params["state"] == "starting" and "uri" not in params for params in statuses)
    assert starts == 1, "the engine need not start again for these"

    client.configuration = {"enable": True, "context": 1024}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.status(
        lambda _: (
            sum(
                n == "draftline/status" and p["state"] == "ready" and "uri" not in p
                for n, p in client.notifications
            )
            == 2
        )
    )
    assert await client.shutdown() == 0


async def test_settings_pushed_by_a_client_that_cannot_be_asked(start: Any) -> None:
    client: Client = await start(answer="x")
    await client.initialize()
    await client.ready()
    client.open(URI, "a")
    client.notify("workspace/didChangeConfiguration", {"settings": {"draftline": {"enable": False}}})
    while await client.complete(URI, 0, 1):
        await asyncio.sleep(0.02)
    assert await client.shutdown() == 0


async def test_failure_is_shown_with_the_next_step_and_restart_tries_again(start: Any) -> None:
    client: Client = await start(fail=1)
    await client.initialize()
    status = await client.status(lambda params: params["state"] == "failed")
    assert status["reason"] == "model-not-fetched"
    assert status["nextStep"] == "Run `draftline model fetch`."
    shown = await client.notification("window/showMessage")
    assert shown["type"] == 1
    assert "draftline model fetch" in shown["message"]
    client.open(URI, "a")
    assert await client.complete(URI, 0, 1) == []
    await client.status(lambda params: params["reason"] == "failed")
    await client.request("workspace/executeCommand", {"command": "draftline.server.restart"})
    await client.status(
        lambda _: (
            sum(
                n == "draftline/status" and p["state"] == "failed" and not p.get("uri")
                for n, p in client.notifications
            )
            == 2
        )
    )
    assert await client.shutdown() == 0


@pytest.mark.parametrize("when", ["loading", "decoding", "idle"])
async def test_a_client_that_hangs_up_ends_the_server(start: Any, when: str) -> None:
    client: Client = await start(
        answer="a" * 1000, step_seconds=0.05, load_seconds=30 if when == "loading" else 0
    )
    await client.initialize()
    if when != "loading":
        await client.ready()
    client.open(URI, "x")
    if when == "decoding":
        client.ask(URI, 0, 1)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    client.hang_up()
    assert await client.wait() == 1
    assert time.monotonic() - began < 20


async def test_the_end_of_the_parent_process_ends_the_server(start: Any) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    client: Client = await start(answer="x")
    await client.initialize(process_id=parent.pid)
    await client.ready()
    parent.send_signal(signal.SIGKILL)
    try:
        assert await client.wait() == 1
    finally:
        parent.wait()


async def test_exit_without_shutdown_has_status_1(start: Any) -> None:
    client: Client = await start()
    await client.initialize()
    client.notify("exit")
    assert await client.wait() == 1


async def test_wrong_messages_are_answered(start: Any) -> None:
    client: Client = await start(answer="x")
    with pytest.raises(RequestFailed) as caught:
        await client.request("textDocument/inlineCompletion", {})
    assert caught.value.code == -32002
    await client.initialize()
    await client.ready()
    with pytest.raises(RequestFailed) as caught:
        await client.request("textDocument/inlineCompletion", {"textDocument": 3})
    assert caught.value.code == -32602
    with pytest.raises(RequestFailed) as caught:
        await client.request("draftline/unknown", {})
    assert caught.value.code == -32601
    client.write_bytes(b"Content-Length: 5\r\n\r\n{nope")
    client.notify("textDocument/didChange", {"textDocument": {}})
    client.open(URI, "a")
    assert insert(await client.complete(URI, 0, 1)) == "x"
    await client.request("shutdown")
    with pytest.raises(RequestFailed) as caught:
        await client.complete(URI, 0, 1)
    assert caught.value.code == -32600
    client.notify("exit")
    assert await client.wait() == 0


async def test_a_stream_out_of_step_ends_the_server(start: Any) -> None:
    client: Client = await start()
    await client.initialize()
    client.write_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert await client.wait() == 1


async def test_tcp(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "tests/e2e/fake_server.py",
        "lsp",
        "--tcp",
        "127.0.0.1:0",
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "FAKE_ANSWER": "x", "DRAFTLINE_HOME": str(tmp_path)},
    )
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), 20)).decode()
    port = int(line.rsplit(":", 1)[1])
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    client.process = process
    try:
        await client.initialize()
        await client.ready()
        client.open(URI, "a")
        assert insert(await client.complete(URI, 0, 1)) == "x"
        assert await client.shutdown() == 0
    finally:
        await client.dispose()


async def test_log_file_holds_no_text_of_documents(start: Any, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    client: Client = await start("--log-file", str(log), "--log-level", "debug", answer="x")
    await client.initialize()
    await client.ready()
    client.open(URI, "MY_TEXT = 1")
    client.change(URI, "MORE_TEXT", (0, 0))
    await client.complete(URI, 0, 3)
    assert await client.shutdown() == 0
    written = log.read_text()
    assert "MY_TEXT" not in written
    assert "MORE_TEXT" not in written


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tests/e2e/fake_server.py", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=ROOT, env={**os.environ, **env}
    )


def test_complete_prints_the_suggestion_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes("\ufeffdef f():\r\n    é = \r\n".encode())
    done = run("complete", f"{file}:2:9", FAKE_ANSWER="1")
    assert (done.returncode, done.stdout) == (0, "1\n")
    done = run("complete", f"{file}:2:9", "--json", FAKE_ANSWER="1")
    figures = json.loads(done.stdout)
    assert figures["text"] == "1"
    assert figures["finish_reason"] == "stop-token"
    assert figures["token_ids"] == [ord("1")]
    assert figures["reason"] == ""
    assert set(figures) == {
        "text",
        "reason",
        "finish_reason",
        "token_ids",
        "logits_sha256",
        "drafted",
        "accepted",
        "forwards",
        "prompt_tokens",
        "cached_tokens",
        "ms",
    }
    assert set(figures["ms"]) == {"load", "prompt", "first", "total"}
    done = run("complete", f"{file}:1:1", FAKE_ANSWER=" ")
    assert (done.returncode, done.stdout) == (1, "")
    assert "filtered:blank" in done.stderr
    done = run("complete", f"{file}:1:1", "--json", FAKE_ANSWER=" ")
    figures = json.loads(done.stdout)
    assert (done.returncode, figures["text"], figures["reason"]) == (1, "", "filtered:blank")
    file.write_text("")
    done = run("complete", f"{file}:1:1", "--json")
    assert done.returncode == 1 and json.loads(done.stdout) == {"text": "", "reason": "empty"}


def test_complete_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\ntwo\n")
    (tmp_path / "binary.py").write_bytes(b"a\0b")
    (tmp_path / "latin.py").write_bytes("é".encode("latin-1"))
    (tmp_path / ".env").write_text("KEY=1")
    for place, status, words in (
        (f"{file}", 2, "PATH:LINE:COL"),
        (f"{file}:x:1", 2, "PATH:LINE:COL"),
        (f"{file}:0:1", 2, "LINE must be from 1 to 3"),
        (f"{file}:4:1", 2, "LINE must be from 1 to 3"),
        (f"{file}:1:5", 2, "COL must be from 1 to 4 on line 1"),
        (f"{tmp_path}/none.py:1:1", 1, "does not exist"),
        (f"{tmp_path}:1:1", 1, "is a directory"),
        (f"{tmp_path}/binary.py:1:1", 1, "binary"),
        (f"{tmp_path}/latin.py:1:1", 1, "byte 0 is 0xe9"),
        (f"{tmp_path}/.env:1:1", 1, "excluded"),
    ):
        done = run("complete", place)
        assert done.returncode == status, (place, done.stderr)
        assert words in done.stderr
        assert done.stdout == ""
    done = run("complete", f"{file}:1:4", FAKE_FAIL="1")
    assert done.returncode == 1
    assert "(model-not-fetched)" in done.stderr and "draftline model fetch" in done.stderr
    for place, reason in ((f"{file}:1:4", "model-not-fetched"), (f"{tmp_path}/.env:1:1", "excluded")):
        done = run("complete", place, "--json", FAKE_FAIL="1")
        assert done.returncode == 1 and json.loads(done.stdout) == {"text": "", "reason": reason}
    done = run("edit", f"{file}:1", "x", FAKE_FAIL="1")
    assert done.returncode == 1 and "no edit (model-not-fetched)" in done.stderr


def test_usage() -> None:
    assert run("--help").returncode == 0
    assert run().returncode == 2
    assert run("nonsense").returncode == 2
    assert run("lsp", "--tcp", "nonsense").returncode == 2
    assert run("lsp", "--threads", "0").returncode == 2
    both = run("lsp", "--stdio", "--tcp", "127.0.0.1:0")
    assert both.returncode == 2 and "--stdio and --tcp exclude each other" in both.stderr
    many = run("lsp", "--threads", "1000")
    assert many.returncode == 2 and "--threads must be a whole number from 1 to" in many.stderr
