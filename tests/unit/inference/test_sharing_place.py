"""Where engines are found, and which one is meant."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from inference.api import EngineConfig
from inference.sharing import link, place
from inference.sharing.pipe import PipeListener, connect_pipe
from inference.sharing.place import NoPrivatePlace, Place, absolute, candidates, key_of, private_directory
from inference.weights import store
from tests.unit.inference.sharing_stand import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no modes")

OTHER: dict[str, Any] = {
    "model": "qwen2.5-coder-1.5b-instruct",
    "numerics": "fp32",
    "draft": "none",
    "device": "cuda",
    "kernels": "torch",
    "threads": 1,
    "context": 512,
    "kv_budget_mb": 100,
    "prefill_chunk": 64,
    "use_cache": False,
    "queue_limit": 1,
    "draft_model": "qwen2.5-coder-0.5b-instruct",
    "kv": "int8",
    "kv_offload_mb": 1,
    "mixed": "head=fp32",
}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without models, and no directory that is named."""
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(place.DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setattr(store, "locate", lambda name: None)


def test_whatever_makes_an_engine_another_makes_another_key() -> None:
    base = EngineConfig()
    fields = {field.name for field in dataclasses.fields(EngineConfig)} - {"allow_download"}
    assert set(OTHER) == fields, "a new field needs another value here"
    keys = [key_of(dataclasses.replace(base, **{name: value})) for name, value in OTHER.items()]
    assert len({key_of(base), *keys}) == 1 + len(fields)
    assert key_of(base) == key_of(EngineConfig())


def test_the_program_and_its_environment_count_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = {key_of(EngineConfig())}
    monkeypatch.setattr(place, "PROTOCOL", 1000)
    keys.add(key_of(EngineConfig()))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    keys.add(key_of(EngineConfig()))
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path / "other"))
    keys.add(key_of(EngineConfig()))
    monkeypatch.setattr(place, "program", lambda: ["changed"])
    keys.add(key_of(EngineConfig()))
    assert len(keys) == 5
    monkeypatch.setenv("EDITOR", "vi")
    assert key_of(EngineConfig()) in keys


def test_consent_to_a_download_counts_while_there_is_something_to_fetch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, consented = EngineConfig(), EngineConfig(allow_download=True)
    assert key_of(asked) != key_of(consented)
    monkeypatch.setattr(store, "locate", lambda name: Path("model.gguf"))
    assert key_of(asked) == key_of(consented)


def test_a_path_is_the_same_from_every_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    relative = EngineConfig(model="models/tiny.gguf", draft_model="models/small.gguf")
    asked = absolute(relative)
    assert asked.model == str(tmp_path / "models" / "tiny.gguf")
    assert asked.draft_model == str(tmp_path / "models" / "small.gguf")
    assert absolute(EngineConfig()) == EngineConfig()
    near = key_of(EngineConfig(model="models/tiny.gguf"))
    assert near == key_of(EngineConfig(model=str(tmp_path / "models" / "tiny.gguf")))
    monkeypatch.chdir(tmp_path / "models")
    assert near != key_of(EngineConfig(model="models/tiny.gguf"))


def test_the_directory_is_made_private(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_path))
    found = private_directory()
    assert found == short_path / "draftline"
    assert (found.stat().st_mode & 0o777, found.stat().st_uid) == (0o700, os.getuid())
    assert private_directory() == found


def spoil(path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "open to others":
        path.mkdir(mode=0o755)
        path.chmod(0o755)
    elif how == "a link":
        (path.parent / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(path.parent / "elsewhere")
    elif how == "a file":
        path.write_text("")
    else:
        path.mkdir(mode=0o700)
        monkeypatch.setattr(place.os, "getuid", lambda: 12345)


@pytest.mark.parametrize("how", ["open to others", "a link", "a file", "of another user"])
def test_a_directory_that_is_not_private_is_not_used(
    how: str, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = short_path / "run"
    spoil(named, how, monkeypatch)
    monkeypatch.setenv(place.DIRECTORY_VARIABLE, str(named))
    with pytest.raises(NoPrivatePlace, match="sharedEngine") as raised:
        private_directory()
    assert str(named) in raised.value.message


def test_the_next_directory_takes_the_place_of_a_bad_one(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = short_path / "runtime"
    (bad / "draftline").mkdir(parents=True)
    (bad / "draftline").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(bad))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(short_path))
    assert private_directory() == short_path / f"draftline-{os.getuid()}"
    assert (bad / "draftline").stat().st_mode & 0o777 == 0o777


def test_nothing_is_made_in_the_directory_of_another_user(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_path))
    assert short_path / "draftline" in candidates()
    monkeypatch.setattr(place.os, "getuid", lambda: 12345)  # as after `sudo -E`
    assert short_path / "draftline" not in candidates()


def test_a_name_that_no_socket_can_have_is_passed_over(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = short_path / ("x" * 100)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setattr(tempfile, "gettempdir", lambda: short)
        found = private_directory()
        assert found.parent == Path(short)
        assert len(os.fsencode(Place(found, "0" * 16).socket)) <= place.MOST_PATH_BYTES
    assert not long.exists()


@pytest.fixture
def short_path() -> Any:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


def test_a_socket_that_nobody_listens_to_is_replaced(short_path: Path) -> None:
    here = Place(short_path, "key")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(here.socket))
    stale.close()
    with pytest.raises(ConnectionRefusedError):
        here.connect(1)
    listener = here.listen()
    assert here.socket.stat().st_mode & 0o777 == 0o600
    client = here.connect(5)
    server = listener.accept()
    sending = threading.Thread(
        target=client.send, args=(b"x" * 300_000,)
    )  # more than the system takes at once
    sending.start()
    assert server.receive() == b"x" * 300_000
    sending.join()
    client.close()
    assert server.receive() is None
    server.close()
    listener.close()
    assert not here.socket.exists()
    with pytest.raises(OSError):
        listener.accept()


def test_a_name_that_was_removed_is_made_again(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LOOK_SECONDS", 0.05)
    here = Place(short_path, "key")
    listener = here.listen()
    accepted: list[link.Link] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted.append(listener.accept())

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    for attached in range(1, 3):
        here.socket.unlink()
        until(here.socket.exists)
        client = until(lambda: _connected(here))
        until(lambda n=attached: len(accepted) == n)  # type: ignore[misc]
        assert here.socket.stat().st_mode & 0o777 == 0o600
        client.send(b"hello")
        assert accepted[-1].receive() == b"hello"
        client.close()
    listener.close()
    thread.join(20)
    assert not thread.is_alive() and not here.socket.exists()
    for server in accepted:
        server.close()


def _connected(here: Place) -> link.Link | None:
    try:
        return here.connect(5)
    except OSError:  # bound, and does not listen yet
        return None


def test_the_name_of_another_process_stays(short_path: Path) -> None:
    here = Place(short_path, "key")
    first = here.listen()
    second = here.listen()  # somebody removed the lock's file too
    first.close()
    here.connect(5).close()
    second.accept().close()
    second.close()
    assert not here.socket.exists()


def test_another_user_is_refused_on_both_sides(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Place(short_path, "key")
    listener = here.listen()
    monkeypatch.setattr(link, "peer_uid", lambda connection: os.getuid() + 1)
    with pytest.raises(link.Stranger, match="user"):
        here.connect(1)
    with pytest.raises(link.Stranger):
        listener.accept()
    monkeypatch.undo()
    client = here.connect(1)
    assert link.peer_uid(client._socket) == os.getuid()  # type: ignore[attr-defined]
    client.close()
    listener.close()


def test_a_message_without_end_is_refused(short_path: Path) -> None:
    here = Place(short_path, "key")
    listener = here.listen()
    client = here.connect(1)
    server = listener.accept()
    client._socket.sendall(b"\xff\xff\xff\xff")  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="bytes"):
        server.receive()
    for end in (client, server, listener):
        end.close()


def test_a_pipe_needs_the_key_of_the_directory(short_path: Path) -> None:
    """Windows' code over a socket, which the standard library serves by the same classes."""
    name, key = str(short_path / "pipe"), short_path / "pipe.key"
    listener = PipeListener(name, key, "AF_UNIX")
    assert key.stat().st_mode & 0o777 == 0o600
    seen: list[Any] = []

    def serve() -> None:
        for _ in range(2):
            try:
                seen.append(listener.accept())
            except ConnectionRefusedError as error:
                seen.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    other = short_path / "other.key"
    with pytest.raises(ConnectionRefusedError):
        connect_pipe(name, other, 5, "AF_UNIX")
    client = connect_pipe(name, key, 0.05, "AF_UNIX")
    thread.join(20)
    assert isinstance(seen[0], ConnectionRefusedError)
    client.send(b"hello")
    assert seen[1].receive() == b"hello"
    with pytest.raises(TimeoutError):
        client.receive()
    client.set_timeout(None)
    seen[1].close()
    assert client.receive() is None
    client.close()
    listener.close()


def test_windows_uses_the_pipe(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Place(short_path, "key")
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(place, "WINDOWS", True)
    monkeypatch.setattr(place, "PipeListener", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(place, "connect_pipe", lambda *arguments: asked.append(arguments))
    here.listen()
    here.connect(3)
    key = short_path / "pipe.key"
    assert asked == [(here.pipe, key), (here.pipe, key, 3)]
    assert here.pipe.startswith("\\\\.\\pipe\\draftline-") and here.pipe != Place(Path("/x"), "key").pipe
