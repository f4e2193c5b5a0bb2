"""Tokenizers built from GGUF metadata."""

from __future__ import annotations

import shutil
from pathlib import Path

import gguf
import pytest
import tokenizers

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.tokenizer import Tokenizer
from inference.weights import gguf_tokenizer
from inference.weights.gguf import GgufFile
from tests.tiny_gguf import add_vocabulary, make_tiny_gguf
from tests.tiny_models import make_tokenizer
from tests.unit.weights.conftest import corpus_texts


def build(path: Path) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(gguf_tokenizer.tokenizer_json(GgufFile(path)).decode())


def only_vocabulary(path: Path, pre: str) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    add_vocabulary(writer, pre)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_same_tokens_as_the_original(tmp_path: Path) -> None:
    built, original = build(make_tiny_gguf(tmp_path / "m.gguf")), make_tokenizer()
    original.normalizer = None  # GGUF files carry no normaliser; transformers makes none up either
    for text in corpus_texts():
        assert built.encode(text).ids == original.encode(text).ids
    assert built.get_vocab() == original.get_vocab()


@pytest.mark.parametrize(
    ("pre", "digits"),
    [
        ("qwen2", ["1", "2", "3", "4", "5"]),
        ("llama-bpe", ["123", "45"]),
        ("smollm", ["1", "2", "3", "4", "5"]),
        ("starcoder", ["1", "2", "3", "4", "5"]),
        ("refact", ["1", "2", "3", "4", "5"]),
        ("deepseek-coder", ["1", "2", "3", "4", "5"]),
        ("gpt-2", ["12345"]),
    ],
)
def test_pre_tokenizers_split_numbers_as_their_models_do(tmp_path: Path, pre: str, digits: list[str]) -> None:
    built = build(only_vocabulary(tmp_path / "m.gguf", pre))
    assert [piece for piece, _ in built.pre_tokenizer.pre_tokenize_str("12345")] == digits
    for text in corpus_texts():
        ids = built.encode(text).ids
        assert built.decode(ids, skip_special_tokens=False) == text


def test_unknown_kinds_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedArchitecture, match="tekken"):
        build(only_vocabulary(tmp_path / "m.gguf", "tekken"))
    writer = gguf.GGUFWriter(tmp_path / "n.gguf", "llama")
    writer.add_tokenizer_model("rwkv")
    writer.add_token_list(["a"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UnsupportedArchitecture, match="rwkv"):
        build(tmp_path / "n.gguf")


def sentencepiece(path: Path, add_space_prefix: bool = False) -> Path:
    pieces = ["▁", "h", "e", "l", "o", "<", "/", "s", ">", "</", "s>", "he", "ll", "hell", "hello", "▁hello"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    types = [2, 3, 3, *[6] * 256, *[1] * len(pieces)]
    scores = [0.0] * 259 + [-float(index) for index in range(len(pieces))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_add_space_prefix(add_space_prefix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_sentencepiece_with_byte_fallback(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(gguf_tokenizer.tokenizer_json(GgufFile(sentencepiece(tmp_path / "m.gguf"))))
    codec = Tokenizer(path, end_ids=[2])
    assert [codec.token_bytes(id) for id in codec.encode("hello hello")] == [b"hello", b" hello"]
    for text in ("hello", " hello", "  héllo\t\n", "</s>hell<s>", "👩‍💻\r\n"):
        ids = codec.encode(text)
        assert codec.decode(ids) == text
        assert not codec.special_ids & set(ids)
    assert codec.special("</s>") == 2
    assert codec.end_ids == {2}


def test_incomplete_vocabulary_is_named(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "qwen2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(["a", "b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(CorruptFile, match="merges"):
        build(tmp_path / "m.gguf")


@pytest.mark.model
def test_real_model_splits_text_as_transformers_does(real_gguf: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    built = build(real_gguf)
    theirs = AutoTokenizer.from_pretrained(real_gguf.parent, gguf_file=real_gguf.name).backend_tokenizer
    texts = [*corpus_texts(), *_system_texts()]
    for text in texts:
        assert built.encode(text).ids == theirs.encode(text).ids, text[:80]
    for id in (*range(0, 151643, 97), *range(151643, 151700)):
        assert built.id_to_token(id) == theirs.id_to_token(id)
    assert {id: (token.content, token.special) for id, token in built.get_added_tokens_decoder().items()} == {
        id: (token.content, token.special) for id, token in theirs.get_added_tokens_decoder().items()
    }


def _system_texts() -> list[str]:
    """Source files that happen to be on this machine: the standard library, C headers, JavaScript."""
    files = sorted(Path(shutil.__file__).parent.glob("*.py"))[::6]
    files += sorted(Path("/usr/include").glob("*.h"))[::8]
    files += sorted(Path("/usr/lib/node_modules").glob("**/*.[jt]s"))[::50][:40]
    texts = []
    for file in files:
        try:
            texts.append(file.read_bytes()[:40_000].decode())
        except (OSError, UnicodeDecodeError):
            continue
    return texts
