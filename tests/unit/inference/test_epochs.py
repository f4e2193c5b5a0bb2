"""After a change of threads or kernels: the bits of a fresh start, and no cache from before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig, GenerationRequest
from inference.epochs import Epochs, NumericsKey
from inference.generation import Outcome
from inference.model.fused import compiler
from inference.model.fused.compiler import NoCompiler
from inference.runtime import Runtime, load_runtime
from tests.tiny_models import make_tiny

try:
    compiler._find()
    HERE = True
except NoCompiler:
    HERE = False

REQUEST = GenerationRequest(
    tuple(range(20, 60)) * 4, document="a", max_new_tokens=24, digest_logits=True, draft="ngram"
)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With heads as wide as the compiled functions want them."""
    return make_tiny(tmp_path_factory.mktemp("wide"), "qwen2", seed=3, head_dim=64)


def _load(model: Path, **more: Any) -> Runtime:
    options = EngineConfig(model=str(model), context=1024, **{"threads": 2, **more})
    return load_runtime(options, lambda message, fraction: None)


def _answer(runtime: Runtime, document: str = "a") -> Outcome:
    request = replace(REQUEST, document=document)
    return runtime.run(request, lambda chunk: None, lambda: None)


def _fresh(model: Path, **more: Any) -> str:
    return _answer(_load(model, **more)).logits_sha256


@pytest.mark.skipif(not HERE, reason="no C compiler on this machine")
def test_other_kernels_are_a_fresh_start(wide_model: Path, tiny_home: Path) -> None:
    compiled, plain = _fresh(wide_model), _fresh(wide_model, kernels="torch")
    assert compiled != plain, "else nothing is tested here"
    runtime = _load(wide_model)
    assert _answer(runtime).logits_sha256 == compiled
    again = _answer(runtime)
    assert again.cached_tokens > 0 and again.logits_sha256 == compiled
    runtime.change(kernels="torch")
    assert not runtime.decoder.fused
    changed = _answer(runtime)
    assert changed.cached_tokens == 0 and changed.logits_sha256 == plain
    assert _answer(runtime).cached_tokens > 0


@pytest.mark.skipif(not HERE, reason="no C compiler on this machine")
def test_what_is_left_from_the_same_numerics_is_used_again(wide_model: Path, tiny_home: Path) -> None:
    compiled, plain = _fresh(wide_model), _fresh(wide_model, kernels="torch")
    runtime = _load(wide_model)
    _answer(runtime, "a")
    runtime.change(kernels="torch")
    other = replace(REQUEST, document="b", prompt=(7, *REQUEST.prompt))  # shares no beginning with "a"
    runtime.run(other, lambda chunk: None, lambda: None)
    assert {slot.document: slot.epoch for slot in runtime.slots.slots} == {"a": 0, "b": 1}
    runtime.change(kernels="auto")
    back = _answer(runtime, "a")
    assert back.cached_tokens > 0 and back.logits_sha256 == compiled
    runtime.change(kernels="torch")
    assert _answer(runtime, "a").logits_sha256 == plain


def test_threads_of_float_sums_start_an_epoch(looping_model: Path, tiny_home: Path) -> None:
    runtime = _load(looping_model, numerics="fp32")
    _answer(runtime)
    runtime.change(threads=1)
    assert torch.get_num_threads() == 1 and runtime.hardware.threads == 1
    changed = _answer(runtime)
    assert changed.cached_tokens == 0
    assert changed.logits_sha256 == _fresh(looping_model, numerics="fp32", threads=1)
    runtime.change(threads=2)
    assert _answer(runtime).cached_tokens == 0


def test_threads_of_integer_sums_do_not(looping_model: Path, tiny_home: Path) -> None:
    runtime = _load(looping_model)
    first = _answer(runtime)
    for threads in (1, 3):
        runtime.change(threads=threads)
        assert runtime.hardware.threads == torch.get_num_threads() == threads
        changed = _answer(runtime)
        assert changed.cached_tokens > 0 and changed.logits_sha256 == first.logits_sha256
    assert first.logits_sha256 == _fresh(looping_model, threads=1)


def test_numbers_of_epochs() -> None:
    epochs, key = Epochs(), NumericsKey("cpu", "torch", (1, 4, 16), None)
    others = [replace(key, device="cuda"), replace(key, steps="compiled"), replace(key, threads=2)]
    numbers = [epochs.enter(k) for k in (key, *others, replace(key, attention_tiles=(16,)))]
    assert len(set(numbers)) == len(numbers)
    assert epochs.enter(NumericsKey("cpu", "torch", (1, 4, 16), None)) == numbers[0]
