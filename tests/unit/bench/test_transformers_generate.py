"""transformers as a decoder in a process of its own, with tiny models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch
import transformers

from bench.peers.base import PeerFailed, Prompt
from bench.peers.transformers_generate import TransformersDecoder
from tests.tiny_gguf import make_tiny_gguf
from tests.tiny_models import make_tiny, make_tokenizer

IDS = tuple(make_tokenizer().encode("def fibonacci(n):\n    result = []\n    a, b = 0, 1\n").ids)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that runs in circles, so that lookups find something."""
    return make_tiny(tmp_path_factory.mktemp("tiny"), gain=1.0, tie_word_embeddings=False)


@pytest.fixture(scope="module")
def decoder(model: Path) -> Iterator[TransformersDecoder]:
    decoder = TransformersDecoder("transformers fp32", model, threads=1)
    decoder.start()
    yield decoder
    decoder.stop()


def _expected(model: Path, count: int) -> list[int]:
    loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    ids = list(IDS)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(loaded(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(IDS) :]


def test_both_modes_decode_what_the_model_says(decoder: TransformersDecoder, model: Path) -> None:
    expected = _expected(model, 40)
    prompt = Prompt(IDS, "")
    plain = decoder.decode(prompt, "plain", 40, frozenset())
    lookup = decoder.decode(prompt, "prompt-lookup", 40, frozenset())
    assert list(plain.token_ids) == list(lookup.token_ids) == expected
    assert (plain.tokens, plain.forwards, plain.drafted, plain.accepted) == (40, 39, 0, 0)
    assert plain.prompt_tokens == len(IDS) and plain.cached_tokens == 0
    assert plain.finish_reason == "length"
    assert plain.first_ms > 0 and plain.decode_ms > 0
    # Every forward, the prompt's own included, brings one token more than it accepts.
    assert lookup.forwards is not None and lookup.accepted is not None and lookup.drafted is not None
    assert lookup.forwards + 1 + lookup.accepted == 40
    assert 0 < lookup.accepted <= lookup.drafted
    assert plain.text == make_tokenizer().decode(expected, skip_special_tokens=False)


@pytest.mark.parametrize("mode", ["plain", "prompt-lookup"])
def test_a_stop_token_ends_the_answer(decoder: TransformersDecoder, model: Path, mode: str) -> None:
    expected = _expected(model, 40)
    stop = expected[5]
    first = expected.index(stop)
    decoded = decoder.decode(Prompt(IDS, ""), mode, 40, frozenset({stop}))
    assert list(decoded.token_ids) == expected[: first + 1]
    assert decoded.finish_reason == "stop"
    assert decoded.text == make_tokenizer().decode(expected[:first], skip_special_tokens=False)


def test_it_says_what_it_runs(decoder: TransformersDecoder) -> None:
    facts = decoder.describe()
    assert (facts["numerics"], facts["threads"]) == ("fp32", 1)
    assert facts["transformers"] == transformers.__version__
    assert facts["architecture"] == "Qwen2ForCausalLM"
    assert facts["weight_bytes"] > 0


def test_it_rests_between_answers(decoder: TransformersDecoder) -> None:
    decoder.decode(Prompt(IDS, ""), "plain", 4, frozenset())
    time.sleep(0.3)
    before = decoder.usage().cpu_seconds
    time.sleep(1.0)
    after = decoder.usage().cpu_seconds
    assert before is not None and after is not None
    assert after - before < 0.2
    assert decoder.usage().private_bytes


def test_strings_are_no_ends_here(decoder: TransformersDecoder) -> None:
    with pytest.raises(PeerFailed, match="cannot stop at strings"):
        decoder.decode(Prompt(IDS, ""), "plain", 4, frozenset(), ("\n",))


def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    decoder = TransformersDecoder("transformers fp32", tmp_path, threads=1)
    with pytest.raises(PeerFailed, match="transformers fp32: ValueError"):
        decoder.start()
    with pytest.raises(PeerFailed, match="not started"):
        decoder.decode(Prompt(IDS, ""), "plain", 4, frozenset())


def test_a_gguf_file_is_the_same_model(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "tiny.gguf")
    directory = make_tiny(tmp_path / "tiny")
    decoder = TransformersDecoder("transformers fp32", path, threads=1)
    try:
        decoder.start()
        decoded = decoder.decode(Prompt(IDS, ""), "plain", 20, frozenset())
    finally:
        decoder.stop()
    expected = _expected(directory, 20)
    assert list(decoded.token_ids) == expected
    assert decoded.text == make_tokenizer().decode(expected, skip_special_tokens=False)


def test_bf16_and_the_end_of_the_process(model: Path) -> None:
    before = set(psutil.Process().children())
    decoder = TransformersDecoder("transformers bf16", model, threads=1, dtype="bf16")
    try:
        decoder.start()
        (child,) = set(psutil.Process().children()) - before
        facts = decoder.describe()
        loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        assert facts["weight_bytes"] == 2 * sum(weight.numel() for weight in loaded.parameters())
        child.kill()
        with pytest.raises(PeerFailed, match="ended unexpectedly"):
            decoder.decode(Prompt(IDS, ""), "plain", 3, frozenset())
    finally:
        decoder.stop()
    decoder.stop()
    assert not child.is_running()
