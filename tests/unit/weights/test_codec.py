"""inference.tokenizer: exact bytes, and text that cannot become a control token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.errors import CorruptFile
from inference.tokenizer import StreamDecoder, Tokenizer
from tests.tiny_models import QWEN_ADDED_TOKENS, VOCAB_SIZE, make_tiny
from tests.unit.weights.conftest import corpus_texts

SPELLINGS = [spelling for spelling, _ in QWEN_ADDED_TOKENS]


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = make_tiny(tmp_path_factory.mktemp("codec") / "m") / "tokenizer.json"
    return Tokenizer(path, end_ids=[505])


def test_bytes_come_back_exactly(codec: Tokenizer) -> None:
    for text in corpus_texts():
        ids = codec.encode(text)
        assert b"".join(map(codec.token_bytes, ids)) == text.encode()
        assert codec.decode(ids) == text


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.one_of(st.text(max_size=8), st.sampled_from([*SPELLINGS, "    ", "\t", "\r\n", "👩‍💻"])),
        max_size=8,
    )
)
def test_text_never_becomes_a_control_token(codec: Tokenizer, parts: list[str]) -> None:
    text = "".join(parts)
    ids = codec.encode(text)
    assert not codec.special_ids & set(ids)
    assert codec.decode(ids) == text


def test_control_tokens_are_known_by_spelling_and_have_no_text(codec: Tokenizer) -> None:
    assert codec.special_ids == set(range(VOCAB_SIZE - len(SPELLINGS), VOCAB_SIZE))
    for spelling in SPELLINGS:
        id = codec.special(spelling)
        assert id is not None and codec.token_bytes(id) == b""
        assert codec.decode([id, *codec.encode("a"), id]) == "a"
    assert codec.special("<|nothing|>") is None
    assert codec.special("def") is None
    assert codec.vocab_size == VOCAB_SIZE
    assert codec.token_bytes(VOCAB_SIZE + 7) == b""


def test_ends_are_those_of_the_config_and_the_known_ones(codec: Tokenizer) -> None:
    assert codec.end_ids == {codec.special("<|endoftext|>"), codec.special("<|im_end|>")}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=30))
def test_streamed_pieces_join_to_the_decoded_text(codec: Tokenizer, ids: list[int]) -> None:
    decoder = StreamDecoder(codec)
    pieces = [decoder.push(id) for id in ids]
    assert "".join(pieces) + decoder.finish() == codec.decode(ids)


def test_a_character_split_over_tokens_waits(codec: Tokenizer) -> None:
    ids = codec.encode("→")
    assert len(ids) == 3  # the tiny vocabulary has no token for it
    decoder = StreamDecoder(codec)
    assert [decoder.push(id) for id in ids[:2]] == ["", ""]
    assert decoder.pending == "→".encode()[:2]
    assert decoder.push(ids[2]) == "→"
    assert decoder.finish() == ""


def test_added_tokens_that_are_text_stay_text(tmp_path: Path) -> None:
    path = make_tiny(tmp_path) / "tokenizer.json"
    state = json.loads(path.read_text())
    blanks = dict(state["added_tokens"][-1], id=VOCAB_SIZE, content="        ", special=False)
    state["added_tokens"].append(blanks)
    path.write_text(json.dumps(state))
    codec = Tokenizer(path)
    ids = codec.encode("x        y")
    assert VOCAB_SIZE in ids
    assert codec.decode(ids) == "x        y"


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"added_tokens": [}'])
def test_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(CorruptFile, match=r"tokenizer\.json"):
        Tokenizer(path)
