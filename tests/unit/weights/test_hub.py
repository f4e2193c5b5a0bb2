"""The hub, played by a server on this machine; each test in a process of its own, since
huggingface_hub reads its settings when it is imported."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.tiny_gguf import make_tiny_gguf
from tests.tiny_models import make_tiny

ROOT = Path(__file__).parents[3]
COMMIT = "c0ffee" * 6 + "c0ff"


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does to what huggingface_hub asks when downloading."""

    files: dict[str, bytes]
    requests: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        self.requests.append(self.path)
        if self.path.startswith("/api/models/draftline/tiny"):
            siblings = [
                {"rfilename": name, "size": len(data), "blobId": _git_id(data)}
                | ({"lfs": _lfs(data)} if name.endswith(".safetensors") else {})
                for name, data in self.files.items()
            ]
            self._send(
                json.dumps({"id": "draftline/tiny", "sha": COMMIT, "siblings": siblings}).encode(), body
            )
            return
        name = self.path.split("?")[0].rsplit("/", 1)[1]
        if "/resolve/" in self.path and name in self.files:
            self._send(self.files[name], body)
        else:
            self.send_response(404 if self.path != "/" else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _send(self, data: bytes, body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _lfs(data: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}


@pytest.fixture
def server() -> Iterator[tuple[str, type[Hub]]]:
    handler = type("ThisHub", (Hub,), {"files": {}, "requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", handler
        server.shutdown()


def run(code: str, endpoint: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env=os.environ | {"HF_ENDPOINT": endpoint, "NO_PROXY": "127.0.0.1"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


PREPARE = """
    import os
    from inference.errors import DraftlineError
    from inference.weights import catalog, store
    from tests.unit.weights.fake_mirror import make_entry
    entry = make_entry(os.environ["SHA"] or None, int(os.environ["SIZE"]), 0, os.environ["FILE"])
    catalog.CATALOG["tiny"] = entry
    for _ in range(2):
        try:
            prepared = store.prepare("tiny", "int8", allow_download=True)
            print("ok", prepared.fetched, prepared.converted, prepared.config["model_type"])
        except DraftlineError as error:
            print(type(error).__name__, error)
"""


def test_a_file_of_the_hub(tmp_path: Path, server: tuple[str, type[Hub]]) -> None:
    endpoint, handler = server
    data = make_tiny_gguf(tmp_path / "tiny.gguf").read_bytes()
    handler.files["tiny.gguf"] = data
    sha = hashlib.sha256(data).hexdigest()
    done = run(PREPARE, endpoint, SHA=sha, SIZE=str(len(data)), FILE="tiny.gguf")
    assert done.stdout.splitlines() == ["ok True True qwen2", "ok False False qwen2"], done
    assert (tmp_path / "hub-cache").is_dir()


def test_another_process_finds_it_in_the_cache(tmp_path: Path, server: tuple[str, type[Hub]]) -> None:
    endpoint, handler = server
    data = make_tiny_gguf(tmp_path / "tiny.gguf").read_bytes()
    handler.files["tiny.gguf"] = data
    arguments = {"SHA": hashlib.sha256(data).hexdigest(), "SIZE": str(len(data)), "FILE": "tiny.gguf"}
    run(PREPARE, endpoint, **arguments)
    asked = len(handler.requests)
    done = run(PREPARE, endpoint, DRAFTLINE_HOME=str(tmp_path / "other-home"), **arguments)
    assert done.stdout.splitlines()[0] == "ok False True qwen2", done
    assert len(handler.requests) == asked


def test_wrong_bytes_are_removed_and_named(tmp_path: Path, server: tuple[str, type[Hub]]) -> None:
    endpoint, handler = server
    handler.files["tiny.gguf"] = bytes(5000)
    done = run(PREPARE, endpoint, SHA="ab" * 32, SIZE="5000", FILE="tiny.gguf")
    assert done.stdout.splitlines()[0].startswith("ChecksumMismatch tiny.gguf from the hub"), done
    left = [path for path in (tmp_path / "hub-cache").rglob("*") if path.is_file()]
    assert not [path for path in left if path.stat().st_size == 5000]


def test_a_damaged_file_in_the_cache_is_replaced(tmp_path: Path, server: tuple[str, type[Hub]]) -> None:
    endpoint, handler = server
    data = make_tiny_gguf(tmp_path / "tiny.gguf").read_bytes()
    handler.files["tiny.gguf"] = data
    sha = hashlib.sha256(data).hexdigest()
    arguments = {"SHA": sha, "SIZE": str(len(data)), "FILE": "tiny.gguf"}
    run(PREPARE, endpoint, **arguments)
    (blob,) = (tmp_path / "hub-cache").rglob(f"blobs/{sha}")
    blob.write_bytes(bytes(len(data)))
    done = run(PREPARE, endpoint, DRAFTLINE_HOME=str(tmp_path / "other-home"), **arguments)
    assert done.stdout.splitlines()[0] == "ok True True qwen2", done
    assert blob.read_bytes() == data


def test_a_directory_of_the_hub(tmp_path: Path, server: tuple[str, type[Hub]]) -> None:
    endpoint, handler = server
    directory = make_tiny(tmp_path / "m")
    handler.files.update({path.name: path.read_bytes() for path in directory.iterdir()})
    handler.files["README.md"] = b"not needed"
    done = run(PREPARE, endpoint, SHA="", SIZE="1000", FILE="tiny")
    assert done.stdout.splitlines() == ["ok True True qwen2", "ok False False qwen2"], done
    assert not any("README" in path for path in handler.requests)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, server: tuple[str, type[Hub]]) -> None:
    endpoint, handler = server
    data = make_tiny_gguf(tmp_path / "tiny.gguf").read_bytes()
    handler.files["tiny.gguf"] = data
    (tmp_path / "file").write_bytes(b"")
    cache = str(tmp_path / "file" / "hub")  # works for root too, whom no mode stops
    sha = hashlib.sha256(data).hexdigest()
    done = run(PREPARE, endpoint, SHA=sha, SIZE=str(len(data)), FILE="tiny.gguf", HF_HUB_CACHE=cache)
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"HomeNotWritable {cache} cannot be written"), done


def test_a_missing_file_is_named(server: tuple[str, type[Hub]]) -> None:
    endpoint, _ = server
    done = run(PREPARE, endpoint, SHA="ab" * 32, SIZE="5000", FILE="tiny.gguf")
    first = done.stdout.splitlines()[0]
    assert first.startswith("NoNetwork tiny could not be downloaded") and "the hub: " in first, done


PROBE = """
    import time
    from inference.weights import hub
    from inference.weights.unavailable import SourceUnavailable
    import huggingface_hub
    start = time.perf_counter()
    try:
        hub.probe()
    except SourceUnavailable as error:
        print(error)
    print(time.perf_counter() - start)
"""


def test_probe_gives_up_on_a_silent_hub() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        done = run(PROBE, f"http://127.0.0.1:{silent.getsockname()[1]}")
    reason, seconds = done.stdout.splitlines()
    assert reason.startswith("the hub: http://127.0.0.1")
    assert float(seconds) < 20, "it would wait for minutes"


def test_probe_of_a_closed_port_and_of_offline_mode() -> None:
    reason, _ = run(PROBE, "http://127.0.0.1:9").stdout.splitlines()
    assert "cannot be reached" in reason
    reason, _ = run(PROBE, "http://127.0.0.1:9", HF_HUB_OFFLINE="1").stdout.splitlines()
    assert "HF_HUB_OFFLINE" in reason
