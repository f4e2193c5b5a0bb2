"""Two servers and one engine process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.client import ROOT, Client
from tests.e2e.engines import Engines, own_engines

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(400),
    pytest.mark.skipif(os.name != "posix", reason="sharing is off where there are no Unix sockets"),
]

URI = "file:///work/project/main.py"
# How often something is killed at a random moment; the promise is about 20.
KILLS = int(os.environ.get("DRAFTLINE_SHARING_KILLS", "4"))
BOUND_SECONDS = 5.0


# Autouse, so that it comes first and ends last: a server that still runs would start an engine anew.
@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    """Sharing is on in a directory of the test's own; what was started there is ended with it."""
    with own_engines() as engines:
        monkeypatch.setenv("DRAFTLINE_RUNTIME_DIR", str(engines.directory))
        monkeypatch.setenv("DRAFTLINE_SHARED_ENGINE", "1")
        yield engines


Start = Callable[..., Awaitable[Client]]


async def editor(start: Start, options: dict[str, Any] | None = None, **behaviour: object) -> Client:
    client = await start(**behaviour)
    await client.initialize(options=options or {"statistics": False})
    return client


async def completes(client: Client, uri: str, seconds: float = 60) -> tuple[float, Any]:
    """Ask until there is a suggestion, as an editor does at each key; how long it took, and its text."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not (items := await client.complete(uri, 0, 8)):
            await asyncio.sleep(0.02)
    return time.monotonic() - began, items[0]["insertText"]


async def test_two_editors_have_one_engine_process(start: Start, engines: Engines) -> None:
    one, two = await asyncio.gather(editor(start, answer="1 + 2"), editor(start, answer="1 + 2"))
    await asyncio.gather(one.ready(), two.ready())
    for client in (one, two):
        client.open(URI, "value = ")
        assert (await completes(client, URI))[1] == "1 + 2"
    (process,) = engines.processes()
    engine = engines.the_one()
    assert (engine.pid, engine.clients, engine.state) == (process.pid, 2, "ready")
    assert one.process is not None and two.process is not None
    assert process.pid not in (one.process.pid, two.process.pid)
    # It belongs to no editor: neither their session nor their terminal ends it.
    assert os.getsid(process.pid) not in map(os.getsid, (0, one.process.pid, two.process.pid))
    assert await one.shutdown() == 0
    await engines.until(lambda engines: engines.the_one().clients == 1)
    two.change(URI, "\n\nother = ", (0, 8))
    assert (await two.complete(URI, 2, 8))[0]["insertText"] == "1 + 2"
    assert await two.shutdown() == 0
    assert engines.processes() == [process]  # it waits for the next window


async def test_other_settings_are_another_engine(start: Start, engines: Engines) -> None:
    one = await editor(start, {"statistics": False})
    two = await editor(start, {"statistics": False, "context": 2048})
    await asyncio.gather(one.ready(), two.ready())
    assert len(engines.answering()) == len(engines.processes()) == 2
    alone = await editor(start, {"statistics": False, "sharedEngine": False})
    await alone.ready()
    assert [engine.clients for engine in engines.answering()] == [1, 1]


async def test_the_engine_ends_when_nobody_has_come_back(start: Start, engines: Engines) -> None:
    client = await editor(start, {"statistics": False, "engineIdleSeconds": 0})
    await client.ready()
    assert len(engines.processes()) == 1
    assert await client.shutdown() == 0
    await engines.until(lambda engines: not engines.processes())


async def test_another_model_ends_the_engine_that_nobody_else_uses(start: Start, engines: Engines) -> None:
    client = await editor(start)
    await client.ready()
    before = engines.the_one().pid
    client.notifications.clear()
    settings = {"statistics": False, "context": 2048}
    client.notify("workspace/didChangeConfiguration", {"settings": {"draftline": settings}})
    await client.ready()
    await engines.until(lambda engines: [process.pid for process in engines.processes()] != [before])
    await engines.until(lambda engines: len(engines.processes()) == 1)


async def test_a_failure_reaches_both_and_the_next_start_is_a_fresh_one(
    start: Start, engines: Engines
) -> None:
    one, two = await asyncio.gather(editor(start, fail=1), editor(start, fail=1))
    for client in (one, two):
        status = await client.status(lambda params: params["state"] == "failed", timeout=60)
        assert (status["reason"], status["nextStep"]) == ("model-not-fetched", "Run `draftline model fetch`.")
        client.open(URI, "value = ")
        assert await client.complete(URI, 0, 8) == []
    await engines.until(lambda engines: not engines.processes())
    one.notifications.clear()
    await one.request("workspace/executeCommand", {"command": "draftline.server.restart", "arguments": []})
    await one.status(lambda params: params["state"] == "failed", timeout=60)


async def test_a_cancelled_request_and_a_closed_window_leave_the_other_alone(
    start: Start, engines: Engines
) -> None:
    answer = "1" * 40
    one, two = await asyncio.gather(
        *(editor(start, answer=answer, step_seconds=0.02) for _ in range(2)),
    )
    await asyncio.gather(one.ready(), two.ready())
    for client in (one, two):
        client.open(URI, "value = ")  # the same name, and the same ids of requests
    id, cancelled = one.ask(URI, 0, 8)
    _, wanted = two.ask(URI, 0, 8)
    await engines.until(lambda engines: engines.the_one().requests == 2)
    one.cancel(id)
    with pytest.raises(Exception, match=r"[Cc]ancel"):
        await cancelled
    one.close(URI)
    assert one.process is not None
    one.process.kill()
    assert (await wanted)[0]["insertText"] == answer
    await engines.until(lambda engines: engines.the_one().clients == 1)


async def test_requests_in_flight_say_why_they_have_no_answer(start: Start, engines: Engines) -> None:
    client = await editor(start, answer="1" * 400, step_seconds=0.02)
    await client.ready()
    client.open(URI, "value = ")
    _, answer = client.ask(URI, 0, 8, automatic=False)
    await engines.until(lambda engines: engines.the_one().requests == 1)
    os.kill(engines.the_one().pid, signal.SIGKILL)
    assert await asyncio.wait_for(answer, 30) == []
    reason = await client.status(lambda params: params["reason"] == "engine-lost")
    assert reason["message"]
    client.notifications.clear()
    await client.ready(timeout=30)


async def test_killing_any_of_them_leaves_the_rest_working(
    start: Start, engines: Engines, record_property: Callable[[str, object], None]
) -> None:
    """The promise: within 5 seconds there is a suggestion again, whoever was killed, and whenever."""
    seed = int(os.environ.get("DRAFTLINE_SHARING_SEED", "1"))
    dice = random.Random(seed)
    behaviour = {"answer": "1 + 2", "load_seconds": 0.2, "step_seconds": 0.005}
    editors = list(await asyncio.gather(*(editor(start, **behaviour) for _ in range(2))))
    for number, client in enumerate(editors):
        client.open(f"{URI}{number}", "value = ")
    slowest = 0.0
    for turn in range(KILLS):
        waiting = [client.ask(f"{URI}{number}", 0, 8)[1] for number, client in enumerate(editors)]
        await asyncio.sleep(dice.uniform(0, 0.6))  # the moment is random, not waited for
        if dice.random() < 0.5 or turn == 0:
            for process in engines.processes():
                process.kill()
            rest = list(enumerate(editors))
        else:
            victim = dice.randrange(2)
            killed = editors[victim].process
            assert killed is not None
            killed.kill()
            rest = [(number, client) for number, client in enumerate(editors) if number != victim]
        # What was on its way has an end, with or without an answer.
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 30)
        assert all(isinstance(end, (list, ConnectionError)) or end is None for end in done)
        for number, client in rest:
            # Somewhere else, so that no answer is one from before.
            uri = f"{URI}{number}-{turn}"
            client.open(uri, "value = ")
            took, text = await completes(client, uri)
            assert text == "1 + 2"
            assert took < BOUND_SECONDS, f"kill {turn} of seed {seed}"
            slowest = max(slowest, took)
        for number, client in enumerate(editors):
            assert client.process is not None
            if client.process.returncode is not None or (number, client) not in rest:
                editors[number] = await editor(start, **behaviour)
                editors[number].open(f"{URI}{number}", "value = ")
                await completes(editors[number], f"{URI}{number}")
        # One that came too late to a start may be about to end; it has loaded nothing.
        await engines.until(lambda engines: len(engines.processes()) == len(engines.answering()) == 1)
    record_property("slowest_seconds", slowest)
    print(f"{KILLS} kills, slowest recovery {slowest:.2f} s")


async def test_tiny_weights_say_the_same_shared_or_not(
    start: Start, engines: Engines, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path / "weights"))
    # Relative to the server's directory, which is not the engine's.
    model = os.path.relpath(tiny_model, ROOT)
    options = {"model": model, "numerics": "fp32", "context": 512, "maxNewTokens": 24, "threads": 1}
    # Random text is no code, and none of it may be lost.
    options |= {"statistics": False, "firstLineMs": 0, "prefetch": False, "debounceMs": 0}
    alone = await editor(start, {**options, "sharedEngine": False}, fake=False)
    pair = await asyncio.gather(*(editor(start, options, fake=False) for _ in range(2)))
    for client in (alone, *pair):
        await client.ready()
        client.open(URI, "for value in range(3):\n    print(value)\nvalue = \n")
    assert engines.the_one().clients == 2

    async def answers(client: Client) -> list[Any]:
        places = [(2, 8), (1, 10), (0, 4), (1, 4), (2, 3)]
        found = [await client.complete(URI, *place) for place in places]
        return [[item["insertText"] for item in items] for items in found]

    wanted = await answers(alone)
    assert any(wanted)
    assert await asyncio.gather(*(answers(client) for client in pair)) == [wanted, wanted]
    engine = engines.the_one()
    for client in pair:
        client.notifications.clear()
    os.kill(engine.pid, signal.SIGKILL)
    await asyncio.gather(*(client.ready() for client in pair))
    for client in pair:
        client.open(URI + "2", "for value in range(3):\n    print(value)\nvalue = \n")
    assert engines.the_one().pid != engine.pid
    assert engines.the_one().clients == 2


@pytest.mark.model
async def test_the_real_model_is_in_memory_once(
    start: Start, engines: Engines, record_property: Callable[[str, object], None]
) -> None:
    options = {"model": "qwen2.5-coder-0.5b-instruct", "statistics": False}
    pair = await asyncio.gather(*(editor(start, options, fake=False) for _ in range(2)))
    for client in pair:
        await client.ready(timeout=240)
        client.open(URI, "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n")
    texts = [(await client.complete(URI, 1, 11))[0]["insertText"] for client in pair]
    assert texts[0].strip().startswith("a + b") and texts[0] == texts[1]
    engine = engines.the_one()
    assert engine.clients == 2 and engine.private_bytes is not None
    servers = []
    for client in pair:
        assert client.process is not None
        servers.append(psutil.Process(client.process.pid).memory_full_info().uss)
    # The weights alone are 494 MB: they are in the engine, and in neither server.
    assert engine.private_bytes > 450e6
    assert max(servers) < 350e6
    began = time.monotonic()
    for client in pair:
        client.notifications.clear()
    os.kill(engine.pid, signal.SIGKILL)
    await asyncio.gather(*(client.ready(timeout=240) for client in pair))
    took = time.monotonic() - began
    figures = [round(size / 1e6) for size in (engine.private_bytes, *servers)]
    record_property("megabytes", figures)
    record_property("seconds_until_ready_again", took)
    print(f"engine and servers: {figures} MB private; ready {took:.1f} s after a kill")
