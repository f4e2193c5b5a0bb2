"""``draftline model``: output, exit status, messages."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from inference import paths
from inference.api import EngineConfig
from inference.diagnosis import files
from inference.weights import catalog, store
from lsp_server.commands import model as command
from tests.tiny_gguf import make_tiny_gguf
from tests.unit.weights.fake_mirror import make_entry


def draftline(*arguments: str) -> int:
    parser = argparse.ArgumentParser("draftline")
    command.add_arguments(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["model", *arguments])
    return int(parsed.run(parsed))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_tiny_gguf(tmp_path / "tiny.gguf")
    data = path.read_bytes()
    entry = make_entry(hashlib.sha256(data).hexdigest(), len(data), 0)
    monkeypatch.setitem(catalog.CATALOG, "tiny", entry)
    paths.downloads_dir().mkdir(parents=True)
    return shutil.move(path, paths.downloads_dir() / "tiny.gguf")


def test_fetch_path_verify_remove(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert draftline("fetch", "tiny") == 0
    assert "converted" in capsys.readouterr().out
    assert draftline("path", "tiny") == 0
    converted = Path(capsys.readouterr().out.strip())
    assert (converted / "model.safetensors").is_file()
    assert draftline("path", "tiny", "--original") == 0
    assert capsys.readouterr().out.strip() == str(tiny)
    assert draftline("path", "tiny", "--numerics", "bf16") == 1
    assert "draftline model fetch tiny" in capsys.readouterr().err
    assert draftline("verify", "tiny") == 0
    assert capsys.readouterr().out.count("ok ") == 2
    data = bytearray((converted / "model.safetensors").read_bytes())
    data[-1] ^= 1  # same size, so only the checksum can tell
    (converted / "model.safetensors").write_bytes(data)
    assert draftline("verify", "tiny") == 1
    output = capsys.readouterr()
    assert f"DAMAGED {converted}" in output.out and "draftline model remove tiny" in output.err
    assert draftline("remove", "tiny") == 0
    assert draftline("verify", "tiny") == 1
    assert not tiny.exists()


def test_list(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert draftline("list") == 0
    assert "fetched" in capsys.readouterr().out
    assert draftline("list", "--json") == 0
    models = {model["name"]: model for model in json.loads(capsys.readouterr().out)}
    assert models["tiny"]["original"] == str(tiny)
    assert models["qwen2.5-coder-0.5b-instruct"]["default"]


def test_forms_whose_names_contain_each_other_are_told_apart(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    made = {}
    for numerics, mixed in (("int8", ""), ("llm-int8", ""), ("int8", "head=bf16"), ("int8", "head=fp32")):
        made[numerics, mixed] = str(store.prepare("tiny", numerics, mixed=mixed).path)  # type: ignore[arg-type]
    assert len(set(made.values())) == 4
    for numerics in ("int8", "llm-int8"):
        assert draftline("path", "tiny", "--numerics", numerics) == 0
        assert capsys.readouterr().out.split() == [made[numerics, ""]]
    assert draftline("list") == 0
    assert "ready (int8, int8-mixed, llm-int8)" in capsys.readouterr().out
    assert files.inspect(EngineConfig("tiny", "llm-int8")).ready
    assert files.inspect(EngineConfig("tiny", "int8", mixed="head=bf16")).ready
    assert not files.inspect(EngineConfig("tiny", "int8", mixed="head=fp16")).ready
    assert not files.inspect(EngineConfig("tiny", "nf4")).ready
    stored = {file.path: file for file in files.inspect(EngineConfig("tiny")).stored}
    assert stored[made["int8", "head=bf16"]].numerics == "int8+head=bf16"
    assert not any(file.stale for file in stored.values())
    assert draftline("remove", "tiny") == 0
    assert not any(Path(path).exists() for path in made.values())


def test_failures_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert draftline("path") == 1
    assert draftline("remove", "qwen2.5-coder-0.5b-instruc") == 1
    error = capsys.readouterr().err
    assert "draftline model fetch" in error and "Did you mean" in error
    assert not capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["remove"], ["fetch", "tiny", "--numerics", "int3"]])
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        draftline(*arguments)
    assert caught.value.code == 2
