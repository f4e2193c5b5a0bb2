"""The server with the real engine: tiny random weights for the protocol, the 0.5B model for sense."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import ROOT, Client, place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

REAL_MODEL = "qwen2.5-coder-0.5b-instruct"
URI = "file:///work/project/main.py"


@pytest.fixture
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps converted tiny weights out of the user's cache."""
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def tiny_options(tiny_model: Path, own_home: None) -> dict[str, Any]:
    return {"model": str(tiny_model), "numerics": "fp32", "context": 512, "maxNewTokens": 64, "threads": 1}


async def test_a_session_with_tiny_weights(start: Any, tiny_options: dict[str, Any]) -> None:
    client: Client = await start(fake=False)
    await client.initialize(options=tiny_options, capabilities={"window": {"workDoneProgress": True}})
    await client.ready()
    client.open(URI, "def f():\r\n    \r\n")
    for column, char in enumerate("value = 12"):
        client.change(URI, char, (1, 4 + column))
        id, pending = client.ask(URI, 1, 5 + column)
        if column in (0, 3, 6):
            client.cancel(id)
    answer = await asyncio.wait_for(pending, 60)
    assert isinstance(answer, list)
    for item in answer:
        assert item["range"]["start"]["line"] == item["range"]["end"]["line"] == 1
        assert "\r" not in item["insertText"]
        assert "<|" not in item["insertText"]
    client.close(URI)
    assert await client.shutdown() == 0
    assert client.violations == []


async def test_a_place_where_the_cursor_rests_is_read_before_the_first_key(
    start: Any, tiny_options: dict[str, Any]
) -> None:
    client: Client = await start(fake=False)
    await client.initialize(options=tiny_options)
    await client.ready()
    client.notify("$/setTrace", {"value": "messages"})
    client.open(URI, "".join(f"value_{number} = {number}\n" for number in range(40)))
    client.notify("draftline/cursor", {"textDocument": {"uri": "file:///nowhere"}, "position": {"line": 0}})
    client.notify("draftline/cursor", {"textDocument": {"uri": "file:///nowhere"}, "position": place(0, 0)})
    client.notify("draftline/cursor", {"textDocument": {"uri": URI}, "position": place(30, 10)})
    while not (await client.request("draftline/statistics"))["counts"]["prefetches"]:
        await asyncio.sleep(0.01)
    await client.complete(URI, 30, 10)
    trace = await client.notification("draftline/trace", lambda params: params["uri"] == URI)
    assert trace["promptTokens"] > 100
    assert trace["cachedTokens"] >= trace["promptTokens"] - 1
    assert await client.shutdown() == 0
    assert client.violations == []


async def test_huge_and_empty_documents_with_tiny_weights(start: Any, tiny_options: dict[str, Any]) -> None:
    client: Client = await start(fake=False)
    await client.initialize(options=tiny_options)
    await client.ready()
    for uri, text, line in ((URI, "", 0), (URI + "2", "value = compute(1)\n" * 110_000, 55_000)):
        client.open(uri, text)
        assert isinstance(await client.complete(uri, line, 0), list)
    assert await client.shutdown() == 0


async def test_hanging_up_while_the_model_loads(start: Any, tiny_options: dict[str, Any]) -> None:
    client: Client = await start(fake=False)
    await client.initialize(options=tiny_options)
    await client.status(lambda params: params["state"] == "loading")
    began = time.monotonic()
    client.hang_up()
    assert await client.wait() == 1
    assert time.monotonic() - began < 30


async def test_a_model_that_is_not_there(start: Any, tmp_path: Path) -> None:
    client: Client = await start(fake=False)
    await client.initialize(options={"model": str(tmp_path / "nothing")})
    status = await client.status(lambda params: params["state"] == "failed", timeout=60)
    assert status["reason"] and status["message"] and status["nextStep"]
    client.open(URI, "a")
    assert await client.complete(URI, 0, 1) == []
    assert await client.shutdown() == 0


def complete(file: Path, place: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "lsp_server", "complete", f"{file}:{place}", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT, env={**os.environ})
    assert done.stdout, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if figures["text"] else 1), done.stderr
    return figures


def test_complete_with_tiny_weights_is_the_same_with_and_without_speculation(
    tmp_path: Path, tiny_model: Path, own_home: None
) -> None:
    file = tmp_path / "a.py"
    file.write_text("for i in range(3):\n    print(i)\nfor i in range(3):\n    ")
    common = ("--model", str(tiny_model), "--numerics", "fp32", "--context", "256", "--max-new-tokens", "24")
    # Threads that wait for busy cores would take most of the time.
    common += ("--threads", "1")
    plain = complete(file, "4:5", *common, "--draft", "none", "--no-cache")
    drafted = complete(file, "4:5", *common, "--draft", "ngram")
    for key in ("text", "token_ids", "logits_sha256", "finish_reason"):
        assert plain[key] == drafted[key]
    assert plain["logits_sha256"]
    assert plain["drafted"] == 0


@pytest.mark.model
def test_complete_with_the_real_model(tmp_path: Path) -> None:
    file = tmp_path / "fib.py"
    file.write_text("def add(a, b):\n    return \n\n\nprint(add(1, 2))\n")
    figures = complete(file, "2:12", "--model", REAL_MODEL)
    assert figures["text"].strip().startswith("a + b")


@pytest.mark.model
async def test_typing_along_with_the_real_model(start: Any) -> None:
    client: Client = await start(fake=False)
    await client.initialize(options={"model": REAL_MODEL, "statistics": False})
    await client.ready(timeout=240)
    client.open(URI, "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n")
    (item,) = await client.complete(URI, 1, 11)
    assert item["insertText"].strip().startswith("a + b")
    client.change(URI, item["insertText"][0], (1, 11))
    (rest,) = await client.complete(URI, 1, 12)
    assert rest["insertText"] == item["insertText"][1:]
    assert await client.shutdown() == 0
