"""What ``--peer`` may name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.choose import (
    LlamaServerPeer,
    OpenAiPeer,
    TransformersPeer,
    decoder_for,
    editor_for,
    infiller_for,
    parse,
    quantisation,
)
from bench.peers.llama_vim import LlamaVim
from bench.peers.llama_vim_infill import LlamaVimInfill
from bench.peers.openai_completions import OpenAiDecoder
from bench.peers.openai_editor import OpenAiEditor, OpenAiInfill
from bench.peers.transformers_generate import TransformersDecoder
from lsp_server.commands.switches import WrongUsage
from lsp_server.settings import Settings
from tests.tiny_gguf import make_tiny_gguf
from tests.unit.bench.fake_llama_server import make_program

SETTINGS = replace(Settings(), threads=3, context=77, seed=5)
URL = "http://127.0.0.1:8012"


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "m-q8_0.gguf"
    path.write_bytes(b"")
    return path


def test_a_program_and_its_model(tmp_path: Path, gguf: Path) -> None:
    program = make_program(tmp_path)
    peer = parse(f"llama-server={program},{gguf}")
    assert peer == LlamaServerPeer(str(program), gguf, "q8_0")
    assert peer.name == "llama-server q8_0"


def test_addresses(tmp_path: Path) -> None:
    assert parse(f"llama-server={URL}") == LlamaServerPeer(URL, None, "")
    assert parse(f"llama-server={URL}").name == "llama-server"
    assert parse(f"openai={URL}") == OpenAiPeer(URL, "")
    assert parse(f"openai={URL}/v1,qwen:0.5b") == OpenAiPeer(f"{URL}/v1", "qwen:0.5b")
    assert parse(f"openai={URL},qwen").name == "openai qwen"


def test_models_for_transformers(tmp_path: Path, gguf: Path) -> None:
    assert parse(f"transformers={tmp_path}") == TransformersPeer(tmp_path, "fp32")
    assert parse(f"transformers={tmp_path},bf16").name == "transformers bf16"
    assert parse(f"transformers={gguf},fp32") == TransformersPeer(gguf, "fp32")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ollama=x", "not understood; it can be llama-server=PROGRAM"),
        ("llama-server", "not understood"),
        ("llama-server=", "not understood"),
        ("llama-server=/bin/sh", "/bin/sh is no program that can be run; write"),
        ("llama-server=/no/such,m.gguf", "/no/such is no program"),
        ("llama-server=/bin/sh,/no/m.gguf", "no file /no/m.gguf"),
        ("transformers=/no/model,bf16", "no /no/model"),
        ("transformers=/bin/sh", "neither a directory nor a .gguf"),
        ("openai=localhost:8080", "does not begin with http"),
    ],
)
def test_nonsense_is_named(spec: str, words: str) -> None:
    with pytest.raises(WrongUsage) as error:
        parse(spec)
    assert words in str(error.value)


def test_each_interface_gets_its_kind(tmp_path: Path) -> None:
    assert isinstance(editor_for(f"llama-server={URL}", SETTINGS), LlamaVim)
    assert isinstance(editor_for(f"openai={URL}", SETTINGS), OpenAiEditor)
    assert isinstance(infiller_for(f"llama-server={URL}", SETTINGS), LlamaVimInfill)
    assert isinstance(infiller_for(f"openai={URL}", SETTINGS), OpenAiInfill)
    assert isinstance(decoder_for(f"openai={URL}", SETTINGS), OpenAiDecoder)
    assert isinstance(decoder_for(f"transformers={tmp_path}", SETTINGS), TransformersDecoder)
    # What speculates is decided when a server starts.
    assert decoder_for(f"llama-server={URL}", SETTINGS).modes == ("plain",)
    for interface in (editor_for, infiller_for):
        with pytest.raises(WrongUsage, match="transformers"):
            interface(f"transformers={tmp_path}", SETTINGS)


def test_a_server_is_started_with_draftlines_settings(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "m.gguf")
    decoder = decoder_for(f"llama-server={make_program(tmp_path)},{path}", SETTINGS)
    assert decoder.modes[0] == "plain" and {"ngram-simple", "ngram-mod"} < set(decoder.modes)
    try:
        decoder.start()
        facts = decoder.describe()
    finally:
        decoder.stop()
    assert "--threads 3 --ctx-size 77" in " ".join(facts["arguments"])
    assert facts["modes"]["ngram-simple"]["parameters"] == {"size-n": "12", "size-m": "48"}
    assert facts["modes"]["ngram-mod"]["started_for_each_prompt"]
    assert not facts["modes"]["plain"]["started_for_each_prompt"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "q4_k_m"),
        ("Model.Q8_0.gguf", "q8_0"),
        ("model-IQ4_XS.gguf", "iq4_xs"),
        ("model-bf16.gguf", "bf16"),
        ("model-F16-v2.gguf", "f16"),
        ("qwen2.5.gguf", ""),
    ],
)
def test_quantisation_by_name(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"no GGUF")
    assert quantisation(path) == kind


def test_quantisation_by_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_tiny_gguf(tmp_path / "wrong-q4_0.gguf")
    assert quantisation(path) == "q4_0"  # the file does not say
    from inference.weights import gguf

    class Says(gguf.GgufFile):
        def _parse(self) -> None:
            self.metadata["general.file_type"] = 7

    monkeypatch.setattr(gguf, "GgufFile", Says)
    assert quantisation(path) == "q8_0"
