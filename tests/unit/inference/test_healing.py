"""Healing: an answer that begins with given characters is what the model would have written anyway."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.api import EngineConfig, GenerationRequest, StopRules
from inference.generation import Outcome
from inference.healing import Healing, Vocabulary
from inference.runtime import Runtime, load_runtime
from inference.tokenizer import MAX_HEALED, Tokenizer
from tests.tiny_models import make_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    make_tokenizer().save(str(path))
    return Tokenizer(path)


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer)


@given(st.one_of(st.binary(min_size=1, max_size=5), st.sampled_from([b" return", b"    ", b"def", b"\n "])))
@settings(deadline=None)
def test_all_tokens_that_agree_and_no_other(
    tokenizer: Tokenizer, vocabulary: Vocabulary, text: bytes
) -> None:
    def agrees(token: bytes) -> bool:
        return bool(token) and (token.startswith(text) or text.startswith(token))

    right = {id for id in range(tokenizer.vocab_size) if agrees(tokenizer.token_bytes(id))}
    found = vocabulary.beginning(text).tolist()
    assert set(found) == right and len(found) == len(right)


@pytest.mark.parametrize(
    ("line", "healed"),
    [
        ("", ""),
        ("    return fo", " fo"),
        ("    return ", " "),
        ("        ", "        "),
        ("def f(x):", "):"),
        ("x = self.na", ".na"),
        ("f(a, b", " b"),
        ("s = 'é", "é"),
        ("x" * (MAX_HEALED + 1), ""),
    ],
)
def test_the_last_piece_is_healed(tokenizer: Tokenizer, line: str, healed: str) -> None:
    assert line[tokenizer.healing_start(line) :] == healed


def test_what_is_hidden_is_counted_in_characters(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    healing = Healing("né", vocabulary, tokenizer)
    assert [healing.visible(piece) for piece in ("n", "", "é=", "1")] == ["", "", "=", "1"]


def run(runtime: Runtime, request: GenerationRequest) -> Outcome:
    return runtime.run(request, lambda chunk: None, lambda: None)


@pytest.mark.parametrize("draft", ["none", "auto"])
def test_the_text_is_that_of_the_unsplit_prompt(looping_model: Path, tiny_home: Path, draft: str) -> None:
    runtime = load_runtime(EngineConfig(model=str(looping_model)), lambda message, fraction: None)
    tried = 0
    # A random model writes control tokens too, and they stand for no text.
    stops = StopRules(token_ids=runtime.tokenizer.special_ids)
    for start in ("def", "for i in", "x =", "class", "return a", "if not", "import", "    self.value"):
        prompt = tuple(runtime.tokenizer.encode(start))
        free = run(runtime, GenerationRequest(prompt, max_new_tokens=24, stops=stops, draft="none"))
        clean = free.text.partition("\ufffd")[0][:10]  # a random model also writes half characters
        for size in range(1, len(clean) + 1):
            heal = free.text[:size]
            request = GenerationRequest(prompt, heal=heal, max_new_tokens=24, stops=stops, draft=draft)
            healed = run(runtime, request)
            # Tokens that only repeat what stands there do not count against the limit.
            assert healed.text.startswith(free.text[size:])
            assert healed.token_ids[: len(free.token_ids)] == free.token_ids
            tried += 1
    assert tried >= 20


def test_one_new_token_is_one_that_shows(looping_model: Path, tiny_home: Path) -> None:
    runtime = load_runtime(EngineConfig(model=str(looping_model)), lambda message, fraction: None)
    prompt = tuple(runtime.tokenizer.encode("def f(n):\n"))
    stops = StopRules(token_ids=runtime.tokenizer.special_ids)
    for text in ("\t\t\t", "zqx"):  # more than one token
        outcome = run(runtime, GenerationRequest(prompt, heal=text, max_new_tokens=1, stops=stops))
        assert len(outcome.token_ids) > 1 and runtime.tokenizer.decode(outcome.token_ids).startswith(text)
        assert runtime.tokenizer.decode(outcome.token_ids) == text + outcome.text


def test_a_vocabulary_without_the_bytes_gives_up(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    healing = Healing("x", vocabulary, tokenizer)
    logits = torch.randn(1, 3)  # a model with three tokens, none of which is an x
    assert torch.equal(healing.constrain(logits), logits) and healing.missing == b""


def test_other_text_is_forced(looping_model: Path, tiny_home: Path) -> None:
    runtime = load_runtime(EngineConfig(model=str(looping_model)), lambda message, fraction: None)
    prompt = tuple(runtime.tokenizer.encode("def fibonacci(n):\n"))
    stops = StopRules(token_ids=runtime.tokenizer.special_ids)
    pieces: list[str] = []
    for text in ("    zzz", "\t", "# é", "☃"):
        request = GenerationRequest(
            prompt, heal=text, max_new_tokens=20, stops=stops, temperature=0.9, seed=3
        )
        pieces.clear()
        outcome = runtime.run(request, lambda chunk: pieces.append(chunk.text), lambda: None)
        assert runtime.tokenizer.decode(outcome.token_ids) == text + outcome.text
        assert "".join(pieces) == outcome.text
