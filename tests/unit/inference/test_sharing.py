"""Several clients of one engine: what is each one's own, and what happens when somebody goes."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inference.api import (
    Below,
    Chunk,
    EngineConfig,
    EngineState,
    EngineStatus,
    FinishReason,
    GenerationRequest,
    GenerationResult,
    StopRules,
    Timings,
)
from inference.errors import EngineLost, EngineStopped, InvalidRequest, PromptTooLong, QueueFull
from inference.sharing import channel, messages, process, start
from inference.sharing import client as client_module
from inference.sharing.inspect import running_engines
from inference.sharing.messages import Hello
from inference.sharing.start import greet
from tests.fake_engine import FakeEngine, Pace
from tests.unit.inference.sharing_stand import Stand, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs Unix sockets")

REQUEST = GenerationRequest((1, 2, 3), document="file:///a.py")


def lives() -> Any:
    """A process that has been started."""

    class Lives:
        def poll(self) -> None:
            return None

    return Lives()


@pytest.fixture
def stands() -> Iterator[Any]:
    made: list[Stand] = []
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # a socket's name must be short

        def make(**behaviour: Any) -> Stand:
            made.append(Stand(Path(directory), **behaviour))
            return made[-1]

        yield make
        for stand in made:
            stand.close()


# -- messages

FULL = GenerationRequest(
    prompt=tuple(range(2000)),
    document="file:///ä\ud800.py",
    heal="re",
    max_new_tokens=7,
    stops=StopRules(
        frozenset({1, 5}),
        ("\n\n",),
        "suffix",
        True,
        3,
        4,
        True,
        Below("if x:", ("a", "b"), True, False, True),
        12.5,
        True,
    ),
    temperature=0.8,
    top_k=5,
    top_p=0.9,
    min_p=0.1,
    seed=2**62,
    draft="ngram",
    draft_limit=3,
    use_cache=False,
    digest_logits=True,
    source_hint=(1, 5),
    client="7",
    background=True,
)
RESULT = GenerationResult(
    "text", (1, 2), FinishReason.SCOPE, 3, 2, 5, 4, 3, Timings(1.5, 2.5, 3.5, 4.5), "00ff"
)
STATUS = EngineStatus(EngineState.FAILED, "words", 0.5, "code", "step")


@pytest.mark.parametrize(
    "message",
    [
        Hello("key", 3, 1.5, True),
        messages.Welcome(1, 2, "model", "ready"),
        messages.State(STATUS, 4096, {"path": "p", "end_ids": [1]}),
        messages.State(EngineStatus(EngineState.READY), 1),
        messages.Submit(1, FULL),
        messages.Submit(2, REQUEST),
        messages.Cancel(3),
        messages.Said(4, "\ud800ü\n", (1, 2)),
        messages.Done(5, RESULT),
        messages.Refused(6, "queue-full", "words", "step"),
        messages.Learn("d", "text"),
        messages.Forget("d"),
        messages.Leave(True),
        messages.Ping(),
        messages.Pong(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_arrive_as_they_were(message: messages.Message) -> None:
    assert messages.decode(messages.encode(message)) == message


@pytest.mark.parametrize("data", [b"", b"{}", b'["Cancel"]', b'["Cancel",{}]', b'["Nothing",{}]', b"\xff"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(messages.BadMessage):
        messages.decode(data)


# -- several clients


def test_the_answer_is_the_one_of_an_engine_in_this_process(stands: Any) -> None:
    def answer(prompt: str) -> str:
        return f"{len(prompt)} characters\nin all"

    alone = FakeEngine(answer=answer)
    alone.start()
    stand = stands(answer=answer)
    first, second = stand.attach(), stand.attach()
    wanted = alone.submit(REQUEST).future.result()
    chunks: list[Chunk] = []
    for client in (first, second):
        generation = client.submit(REQUEST)
        generation.listen(chunks.append)
        assert generation.future.result(20) == wanted
        assert "".join(chunk.text for chunk in chunks) == wanted.text
        chunks.clear()
        assert (client.context, client.tokenizer.encode("a")) == (4096, [97])
    streamed = first.submit(REQUEST)
    assert "".join(chunk.text for chunk in streamed.chunks()) == wanted.text


def test_documents_and_ids_of_two_clients_are_not_confused(stands: Any) -> None:
    pace = Pace()
    stand = stands(answer="abcdef", pace=pace)
    first, second = stand.attach(), stand.attach()
    ours = first.submit(REQUEST)
    until(lambda: len(stand.engine.generations) == 1)
    theirs = second.submit(REQUEST)  # the same document and the same id: the first goes on
    until(lambda: len(stand.engine.generations) == 2)
    documents = [request.document for request in stand.engine.requests]
    assert len(set(documents)) == 2 and all(name.endswith(REQUEST.document) for name in documents)
    assert len({request.client for request in stand.engine.requests}) == 2
    ours.cancel()
    assert ours.future.result(20).finish_reason is FinishReason.CANCELLED
    pace.allow(6)
    result = theirs.future.result(20)
    assert (result.text, result.finish_reason) == ("abcdef", FinishReason.STOP_TOKEN)


def test_a_newer_request_of_the_same_client_takes_the_place_of_the_older(stands: Any) -> None:
    pace = Pace()
    stand = stands(pace=pace)
    client = stand.attach()
    old = client.submit(REQUEST)
    until(lambda: len(stand.engine.generations) == 1)
    client.submit(REQUEST)
    assert old.future.result(20).finish_reason is FinishReason.SUPERSEDED


def test_closing_a_document_closes_the_own_one_only(stands: Any) -> None:
    stand = stands()
    first, second = stand.attach(), stand.attach()
    first.learn("a", "one")
    second.learn("a", "two")
    until(lambda: len(stand.engine.learned) == 2)
    first.close_document("a")
    first.close_document("never seen")
    until(lambda: list(stand.engine.learned.values()) == ["two"])


def test_a_client_that_goes_takes_only_its_own_along(stands: Any) -> None:
    pace = Pace()
    stand = stands(answer="abc", pace=pace)
    first, second = stand.attach(), stand.attach()
    first.learn("a", "one")
    second.learn("a", "two")
    left = first.submit(REQUEST)
    stays = second.submit(REQUEST)
    until(lambda: len(stand.engine.generations) == 2 and len(stand.engine.learned) == 2)
    first.close()
    assert left.future.result(20).finish_reason is FinishReason.CANCELLED
    assert first.status.state is EngineState.STOPPED
    until(lambda: stand.service.clients == 1)
    until(lambda: list(stand.engine.learned.values()) == ["two"])
    until(lambda: sum(running.future.done() for running in stand.engine.generations) == 1)
    pace.allow(3)
    assert stays.future.result(20).text == "abc"
    with pytest.raises(EngineStopped):
        first.submit(REQUEST)


def test_errors_keep_their_class_and_their_words(stands: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand = stands()
    client = stand.attach()
    for error in (QueueFull("many", "later"), PromptTooLong("long", "shorter")):

        def refuse(self: FakeEngine, request: GenerationRequest, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(FakeEngine, "submit", refuse)
        with pytest.raises(type(error), match=f"{error}"):
            client.submit(REQUEST).future.result(20)


def test_a_client_that_speaks_nonsense_is_dropped_and_the_others_stay(stands: Any) -> None:
    stand = stands(answer="abc")
    good = stand.attach()
    bad, _ = greet(stand.place, Hello(stand.place.key, 1))
    until(lambda: stand.service.clients == 2)
    bad.send(b"nonsense")
    until(lambda: stand.service.clients == 1)
    bad.close()
    with pytest.raises(OSError):
        greet(stand.place, Hello("another key", 1))
    assert good.submit(REQUEST).future.result(20).text == "abc"


def test_visitors_are_told_and_not_counted(stands: Any) -> None:
    stand = stands()
    stand.attach()
    stand.attach()
    (running,) = running_engines(stand.place.directory)
    assert (running.pid, running.clients, running.state) == (os.getpid(), 2, "ready")
    assert running.private_bytes is None or running.private_bytes > 0
    assert stand.service.clients == 2
    stand.close()
    assert running_engines(stand.place.directory) == []


def test_it_is_idle_when_the_last_has_gone(stands: Any) -> None:
    stand = stands()
    first, second = stand.attach(idle_seconds=0), stand.attach(idle_seconds=0)
    idle = threading.Thread(target=stand.service.wait_until_idle)
    idle.start()
    first.close()
    until(lambda: stand.service.clients == 1)
    assert idle.is_alive()
    second.close()
    idle.join(20)
    assert not idle.is_alive()


def test_who_comes_when_nobody_is_waited_for_any_more_is_not_taken(stands: Any) -> None:
    stand = stands()
    stand.attach(idle_seconds=0).close()
    stand.service.wait_until_idle()  # the process is about to end
    with pytest.raises(OSError, match="hung up"):
        greet(stand.place, Hello(stand.place.key, 1))
    assert stand.service.clients == 0


def test_a_configuration_that_no_engine_could_run_is_refused_at_once(stands: Any) -> None:
    with pytest.raises(InvalidRequest, match="context = 1"):
        client_module.SharedEngine(EngineConfig(context=1), stands().place)


def test_a_connection_that_cannot_be_served_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "_PAUSE_SECONDS", 0.0)
    closing = threading.Event()
    served: list[object] = []

    class Service:
        def serve(self, link: object) -> None:
            served.append(link)
            if len(served) <= 3:
                raise RuntimeError("can't start new thread")
            closing.set()

    listener: Any = SimpleNamespace(accept=object)
    service: Any = Service()
    process._accept(listener, service, closing)
    assert len(served) == 4
    assert caplog.text.count("can't start new thread") == 1, "the log stays small"


def test_whoever_wants_another_engine_ends_this_one_only_when_alone(stands: Any) -> None:
    stand = stands()
    first, second = stand.attach(idle_seconds=1000), stand.attach(idle_seconds=1000)
    first.retire()
    until(lambda: stand.service.clients == 1)
    idle = threading.Thread(target=stand.service.wait_until_idle)
    idle.start()
    leaving = threading.Thread(target=second.retire)
    leaving.start()
    idle.join(20)
    assert not idle.is_alive()
    stand.close()  # as the process would end
    leaving.join(20)
    assert not leaving.is_alive()


def test_a_failure_waits_for_somebody_who_hears_of_it(stands: Any) -> None:
    stand = stands(fail=True)
    ending = threading.Thread(target=stand.service.wait_until_idle)
    ending.start()
    client = stand.attach(ready=False)
    until(lambda: client.status.state is EngineState.FAILED)
    assert (client.status.code, bool(client.status.next_step)) == ("model-not-fetched", True)
    ending.join(20)
    assert not ending.is_alive()
    with pytest.raises(EngineStopped):
        client.submit(REQUEST)


def test_a_failure_that_nobody_has_heard_of_is_not_the_end() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        stand = Stand(Path(directory), fail=True)
        ending = threading.Thread(target=stand.service.wait_until_idle, daemon=True)
        ending.start()
        assert stand.service.failed
        ending.join(0.1)
        assert ending.is_alive()
        stand.close()


# -- the process ends, or hangs


def test_requests_end_and_another_process_is_found(stands: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand = stands(pace=Pace())
    client = stand.attach()
    generation = client.submit(REQUEST)
    until(lambda: len(stand.engine.generations) == 1)
    others: list[Stand] = []

    def spawn(*arguments: object) -> Any:
        others.append(stands(answer="again"))
        return lives()

    monkeypatch.setattr(start, "start_process", spawn)
    stand.listener.close()
    stand.service.hang_up(5)
    with pytest.raises(EngineLost):
        generation.future.result(20)
    until(lambda: others and client.status.state is EngineState.READY)
    assert client.submit(REQUEST).future.result(20).text == "again"
    assert len(others) == 1
    states = [status.state for status in stand.statuses]
    lost = states.index(EngineState.LOADING)
    assert EngineState.READY in states[:lost] and states[-1] is EngineState.READY


@pytest.mark.parametrize("long_seconds", [60.0, -1.0])
def test_a_process_that_ends_again_and_again_is_given_up_however_long_it_loads(
    long_seconds: float, stands: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = stands()
    monkeypatch.setattr(client_module, "LONG_SECONDS", long_seconds)
    monkeypatch.setattr(client_module.SharedEngine, "_session", lambda self, link: link.close())
    client = stand.attach(ready=False, back_off=(0.0, 0.0))
    until(lambda: client.status.state is EngineState.FAILED)
    assert client.status.code == "engine-lost" and str(stand.place.log) in client.status.next_step
    with pytest.raises(EngineStopped):
        client.submit(REQUEST)


def test_who_hears_nothing_asks_again_and_kills_nobody_who_answers(
    stands: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PING_SECONDS", 0.02)
    stand = stands(answer="abc")
    client = stand.attach()
    monkeypatch.setattr(start, "end_silent", lambda place: pytest.fail("it answers"))
    before = client._channel
    monkeypatch.setattr(client_module, "HUNG_SECONDS", -1.0)  # nobody can be as quick as that
    until(lambda: client._channel is not None and client._channel is not before)
    monkeypatch.setattr(client_module, "HUNG_SECONDS", 1000.0)
    until(lambda: client.status.state is EngineState.READY and stand.service.clients == 1)
    assert client.submit(REQUEST).future.result(20).text == "abc"
    assert client.process_id == os.getpid()


def test_time_in_which_this_process_was_stopped_is_no_silence(
    stands: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PING_SECONDS", 0.02)
    stand = stands(answer="abc")
    client = stand.attach()
    channel_before = client._channel
    assert channel_before is not None
    pings: list[messages.Message] = []
    send = channel_before.send
    monkeypatch.setattr(channel_before, "send", lambda message: (pings.append(message), send(message)))
    # As after SIGCONT: the clock has gone on.
    late = SimpleNamespace(monotonic=lambda: time.monotonic() + 1000)
    monkeypatch.setattr(client_module, "time", late)
    until(lambda: len(pings) > 3)
    assert client._channel is channel_before and client.status.state is EngineState.READY


def test_an_old_status_does_not_follow_the_end(stands: Any) -> None:
    stand = stands()
    client = stand.attach()
    client.close()
    client._state(messages.State(EngineStatus(EngineState.READY), 1))
    assert client.status.state is EngineState.STOPPED
    client.close()  # once more does no harm
    assert client.status.state is EngineState.STOPPED


class Stuck:
    """A link whose other end neither reads nor writes."""

    def __init__(self) -> None:
        self._shut = threading.Event()

    def send(self, data: bytes) -> None:
        self._shut.wait(20)
        raise OSError("shut")

    def receive(self) -> bytes | None:
        self._shut.wait(20)
        return None

    def set_timeout(self, seconds: float | None) -> None:
        pass

    def shut(self) -> None:
        self._shut.set()

    def close(self) -> None:
        self._shut.set()


def test_who_does_not_read_is_dropped_and_that_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(channel, "MOST_WAITING", 3)
    ended = threading.Event()
    stuck = channel.Channel(Stuck(), lambda message: None, ended.set, "stuck")
    stuck.start()
    for _ in range(6):
        stuck.send(messages.Ping())
    assert ended.wait(20)
    assert "does not read" in caplog.text
    caplog.clear()
    stuck.send(messages.Ping())
    assert not caplog.text and stuck._waiting.qsize() < 8
