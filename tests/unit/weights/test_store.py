"""The entry point: names, paths, no network when all is here, and removal."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from inference import paths
from inference.errors import HomeNotWritable, ModelNotFetched, UnknownModel, UnsupportedArchitecture
from inference.weights import catalog, store
from inference.weights.store import prepare
from tests.tiny_gguf import make_tiny_gguf
from tests.tiny_models import make_tiny
from tests.unit.weights.fake_mirror import make_entry

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog model named tiny, already downloaded; its path."""
    path = make_tiny_gguf(tmp_path / "tiny.gguf")
    data = path.read_bytes()
    entry = make_entry(hashlib.sha256(data).hexdigest(), len(data), 0)
    monkeypatch.setitem(catalog.CATALOG, "tiny", entry)
    paths.downloads_dir().mkdir(parents=True)
    return shutil.move(path, paths.downloads_dir() / "tiny.gguf")


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_everything_here_means_no_network_and_no_time(tiny: Path, no_sockets: None) -> None:
    first = prepare("tiny", "int8", allow_download=True)
    assert (first.fetched, first.converted) == (False, True)
    again = prepare("tiny", "int8", allow_download=True)
    assert again.path == first.path and not again.converted
    assert prepare("TINY", "int8").path == first.path


def test_by_path_it_takes_no_time_either(tmp_path: Path, no_sockets: None) -> None:
    for model in (make_tiny(tmp_path / "m"), make_tiny_gguf(tmp_path / "g.gguf")):
        prepare(str(model), "int8")
        assert not prepare(str(model), "int8").converted


def test_a_conversion_works_without_its_original(tiny: Path) -> None:
    first = prepare("tiny", "int8")
    tiny.unlink()
    assert prepare("tiny", "int8").path == first.path
    with pytest.raises(ModelNotFetched):
        prepare("tiny", "bf16")


def test_not_fetched_names_the_command(no_sockets: None) -> None:
    with pytest.raises(ModelNotFetched) as caught:
        prepare("qwen2.5-coder-1.5b-instruct", "int8")
    assert caught.value.next_step.startswith("Run `draftline model fetch qwen2.5-coder-1.5b-instruct`")


def test_unknown_names_and_paths() -> None:
    with pytest.raises(UnknownModel, match=r"Did you mean qwen2\.5-coder-0\.5b-instruct"):
        prepare("qwen2.5-coder-0.5b-instrcut", "int8")
    with pytest.raises(UnknownModel, match="model list"):
        prepare("zzz", "int8")
    for path in ("/nowhere/model.gguf", "model.gguf", "./models/x"):
        with pytest.raises(UnknownModel, match="no model at"):
            prepare(path, "int8")


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"x")
    with pytest.raises(UnsupportedArchitecture, match="neither"):
        prepare(str(path), "int8")


def test_relative_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tiny(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    assert (
        prepare("m", "int8").path == prepare("./m", "int8").path == prepare(str(tmp_path / "m"), "int8").path
    )


def test_list_locate_remove(tiny: Path) -> None:
    prepared = prepare("tiny", "int8")
    status = next(status for status in store.list_models() if status.entry.name == "tiny")
    assert (status.original, status.converted) == (tiny, (prepared.path,))
    assert store.locate("tiny") == tiny
    assert set(store.remove("tiny")) == {tiny, prepared.path}
    assert store.locate("tiny") is None and not prepared.path.exists()
    assert store.remove("tiny") == []
    with pytest.raises(UnknownModel):
        store.remove("nothing")


def test_neither_torch_nor_transformers_is_imported(tiny: Path) -> None:
    code = """
import sys
import inference.tokenizer, lsp_server.commands.model
from inference.weights.store import prepare
prepared = prepare(sys.argv[1], "int8")
inference.tokenizer.Tokenizer(prepared.tokenizer)
print(sorted({"torch", "transformers", "huggingface_hub"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tiny)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_catalog_is_consistent() -> None:
    for name, entry in catalog.CATALOG.items():
        assert name == entry.name == name.lower()
        assert entry.licence and entry.description
        assert entry.sha256 is None or len(entry.sha256) == 64
        assert (entry.sha256 is None) == (entry.hub.file is None)
    assert catalog.CATALOG["qwen2.5-coder-3b"].licence == "qwen-research"


@pytest.mark.model
def test_real_model_converts(real_gguf: Path) -> None:
    prepared = prepare(str(real_gguf), "int8")
    assert prepared.converted
    assert prepared.config["hidden_size"] == 896


def test_a_home_that_cannot_be_written_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_tiny(home.parent / "m")
    blocked = home.parent / "a-file"
    blocked.write_text("")
    monkeypatch.setenv("DRAFTLINE_HOME", str(blocked))
    with pytest.raises(HomeNotWritable, match=re.escape(str(blocked))):
        prepare(str(model), "int8")
