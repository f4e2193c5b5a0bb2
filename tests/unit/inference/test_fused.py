"""The compiled steps: the same numbers as torch's operations, and each row's bits its own."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.api import EngineConfig, GenerationRequest
from inference.drafting.planner import Planner
from inference.drafting.tree import Tree
from inference.drafting.tree_drafter import TreeDrafter
from inference.generation import Outcome
from inference.model.attention import attend, plan_rows
from inference.model.elementwise import rms_norm, silu_times
from inference.model.fused import compiler
from inference.model.fused.check import fault
from inference.model.fused.compiler import NoCompiler, compiled, load
from inference.model.fused.library import Library
from inference.model.linear.int8 import quantize_rows
from inference.model.tree import MAX_ROWS, shape_of
from inference.runtime import Runtime, load_runtime
from tests.tiny_models import make_tiny

try:
    compiler._find()
    HERE = True
except NoCompiler:
    HERE = False
needs_compiler = pytest.mark.skipif(not HERE, reason="no C compiler on this machine")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("home")))
        return load()


def dequantized(q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (q.float() - 128) * scale[:, None]


@needs_compiler
@pytest.mark.parametrize(("rows", "width"), [(1, 16), (3, 100), (9, 896)])
def test_quantize_has_the_bits_of_torch(library: Library, rows: int, width: int) -> None:
    x = torch.randn(rows, width) * 3
    x[0, 0] = 0.0
    q, scale = torch.empty(rows, width, dtype=torch.uint8), torch.empty(rows)
    library.quantize(x.data_ptr(), rows, width, q.data_ptr(), scale.data_ptr())
    right, right_scale = quantize_rows(x)
    assert torch.equal(q, right) and torch.equal(scale, right_scale[:, 0])
    x.zero_()
    library.quantize(x.data_ptr(), rows, width, q.data_ptr(), scale.data_ptr())
    assert bool((q == 128).all())


@needs_compiler
@pytest.mark.parametrize("rows", [1, 5])
def test_sum_norm_and_activation(library: Library, rows: int) -> None:
    width, inner = 112, 200
    x, update, weight = torch.randn(rows, width), torch.randn(rows, width), torch.rand(width)
    factor, scale = torch.rand(rows), torch.empty(rows)
    q = torch.empty(rows, width, dtype=torch.uint8)
    total = x + update * factor[:, None]
    library.add_norm(
        x.data_ptr(), update.data_ptr(), factor.data_ptr(), rows, width, weight.data_ptr(), 1e-6,
        q.data_ptr(), scale.data_ptr(),
    )  # fmt: skip
    assert torch.equal(x, total)
    normed = rms_norm(total, weight, 1e-6)
    assert (dequantized(q, scale) - normed).abs().max() <= scale.max() * 0.51

    y, wide = torch.randn(rows, 2 * inner) * 6, torch.empty(rows, inner, dtype=torch.uint8)
    library.silu(y.data_ptr(), factor.data_ptr(), rows, inner, wide.data_ptr(), scale.data_ptr())
    active = silu_times(y * factor[:, None])
    assert (dequantized(wide, scale) - active).abs().max() <= scale.max() * 0.51


@needs_compiler
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize(("heads", "kv_heads"), [(14, 2), (4, 4), (6, 1)])
def test_attention(library: Library, heads: int, kv_heads: int, dim: int) -> None:
    rows, first, capacity = 21, 503, 1024
    query = torch.randn(rows, heads, dim)
    keys, values = torch.randn(kv_heads, capacity, dim), torch.randn(kv_heads, capacity, dim)
    groups = plan_rows(first, rows, heads // kv_heads, (1,), torch.device("cpu"), torch.float32)
    right = attend(query, keys, values, groups, dim**-0.5)

    def run(start: int, stop: int, block: int) -> torch.Tensor:
        size = library.attention_work(heads, kv_heads, dim, block, first + stop)
        work, out = torch.empty(size), torch.empty(stop - start, heads * dim)
        part = query[start:stop].contiguous()
        library.attention(
            part.data_ptr(), keys.data_ptr(), values.data_ptr(), stop - start, heads, kv_heads, dim,
            capacity, first + start, dim**-0.5, block, work.data_ptr(), size, out.data_ptr(), None, None,
            None, None,
        )  # fmt: skip
        return out

    whole = run(0, rows, 8)
    assert (whole - right).abs().max() < 1e-5
    for block in (1, 3, 32):
        assert torch.equal(run(0, rows, block), whole)
    for start, stop in ((0, 1), (1, 4), (4, 20), (20, 21)):
        assert torch.equal(run(start, stop, 8), whole[start:stop])


def runtime(model: Path, **more: Any) -> Runtime:
    config = EngineConfig(model=str(model), context=1024, threads=2, **more)
    return load_runtime(config, lambda message, fraction: None)


@pytest.fixture
def wide_model(tmp_path: Path, tiny_home: Path) -> Path:
    directory = tmp_path / "wide"
    make_tiny(directory, "qwen2", seed=3, head_dim=64)
    return directory


@needs_compiler
def test_a_decoder_with_compiled_steps(wide_model: Path) -> None:
    fused, plain = runtime(wide_model), runtime(wide_model, kernels="torch")
    assert fused.decoder.fused and not plain.decoder.fused
    tokens = [(7 * i) % 400 for i in range(600)]
    with torch.inference_mode():
        a, b = (r.decoder.forward(tokens, r.decoder.new_slot(1024)) for r in (fused, plain))
        slot, parts = fused.decoder.new_slot(1024), []
        for start, stop in ((0, 1), (1, 17), (17, 145), (145, 500), (500, 600)):
            parts.append(fused.decoder.forward(tokens[start:stop], slot))
    assert a is not None and b is not None
    assert torch.nn.functional.cosine_similarity(a, b, dim=-1).min() > 0.99
    assert torch.equal(torch.cat([part for part in parts if part is not None]), a)


@needs_compiler
def test_drafts_and_threads_leave_the_bits_alone(wide_model: Path) -> None:
    loaded = runtime(wide_model)
    request = GenerationRequest(tuple(range(20, 60)) * 4, max_new_tokens=40, digest_logits=True)

    def digest(draft: Any, threads: int) -> str:
        torch.set_num_threads(threads)
        outcome = loaded.run(replace(request, draft=draft, use_cache=False), lambda chunk: None, lambda: None)
        return outcome.logits_sha256

    assert digest("none", 2) == digest("ngram", 2) == digest("auto", 1) == digest("none", 1)


@needs_compiler
def test_rows_of_a_tree_have_the_bits_of_chains(wide_model: Path) -> None:
    decoder = runtime(wide_model).decoder
    prompt = [(7 * i) % 400 for i in range(501)]
    tokens, parents = [3, 14, 15, 92, 65, 35, 89, 79], [-1, 0, 0, 1, 3, 2, 3, 0]
    with torch.inference_mode():
        slot = decoder.new_slot(1024)
        decoder.forward(prompt, slot, None)
        tree = decoder.forward(tokens, slot, parents=parents)
        assert tree is not None
        kept = [0, 1, 3, 6]
        slot.keep(len(prompt), kept)
        assert slot.tokens == prompt + [tokens[row] for row in kept]
        after = decoder.forward([5], slot)
        for leaf in (4, 5, 6, 7):
            path = [leaf]
            while parents[path[0]] >= 0:
                path.insert(0, parents[path[0]])
            fresh = decoder.new_slot(1024)
            decoder.forward(prompt, fresh, None)
            chain = decoder.forward([tokens[row] for row in path], fresh)
            assert chain is not None and torch.equal(chain, tree[path])
            if path == kept:
                plain = decoder.forward([5], fresh)
                assert plain is not None and after is not None and torch.equal(plain, after)


@needs_compiler
def test_wide_trees_up_to_the_end_of_the_context(wide_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = EngineConfig(model=str(wide_model), context=600, threads=2)
    loaded = load_runtime(config, lambda message, fraction: None)
    fan = Tree(tuple(range(31)), (-1,) * 31, (0.5,) * 31, ("suffix",) * 31)
    monkeypatch.setattr(TreeDrafter, "propose", lambda self, limit: fan.head(limit))
    monkeypatch.setattr(Planner, "width", lambda self, tree, share=1.0: len(tree))
    request = GenerationRequest(tuple(range(20, 60)) * 14, max_new_tokens=64, digest_logits=True)

    def answer(draft: Any) -> Outcome:
        fresh = replace(request, draft=draft, use_cache=False)
        return loaded.run(fresh, lambda chunk: None, lambda: None)

    plain, drafted = answer("none"), answer("auto")
    assert len(plain.token_ids) == 40 and drafted.drafted > 31
    assert drafted.token_ids == plain.token_ids and drafted.logits_sha256 == plain.logits_sha256


def test_a_fault_in_a_forward_leaves_no_tree_behind(
    wide_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = runtime(wide_model)
    request = GenerationRequest(tuple(range(20, 60)), document="a.py", max_new_tokens=8, digest_logits=True)
    plain = loaded.run(replace(request, draft="none"), lambda chunk: None, lambda: None)
    with monkeypatch.context() as patch:
        fan = Tree((1, 2, 3), (-1, -1, 0), (0.5,) * 3, ("suffix",) * 3)
        patch.setattr(TreeDrafter, "propose", lambda self, limit: fan.head(limit))
        patch.setattr(Planner, "width", lambda self, tree, share=1.0: len(tree))
        patch.setattr(Planner, "observe", lambda self, rows, ms: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            loaded.run(request, lambda chunk: None, lambda: None)
    (slot,) = loaded.slots.slots
    assert slot.tokens == list(request.prompt)
    again = loaded.run(request, lambda chunk: None, lambda: None)
    assert again.logits_sha256 == plain.logits_sha256


def test_bad_trees() -> None:
    assert shape_of([-1, 0, 1]) is None
    for parents in ([0, 0], [-1, -1, 0], [-1, 2, 0], [-1, 0] + [0] * MAX_ROWS):
        with pytest.raises(ValueError):
            shape_of(parents)


@needs_compiler
@pytest.mark.parametrize("word", ["wrong values", "beside other rows", "in a tree"])
def test_the_check_finds_a_wrong_function(wide_model: Path, library: Library, word: str) -> None:
    decoder = runtime(wide_model).decoder
    real = library.layers

    def broken(model: Any, block: Any, threads: int) -> None:
        real(model, block, threads)
        facts = block._obj
        tree = facts.depth is not None
        wrong = {
            "wrong values": True,
            "beside other rows": facts.rows > 1 and not tree,
            "in a tree": tree,
        }
        if wrong[word]:
            size = 1000.0 if word == "wrong values" else 1e-3
            nudge, factor = torch.full((1, 64), 1.0), torch.full((1,), size)
            library.add_norm(facts.x, nudge.data_ptr(), factor.data_ptr(), 1, 64, None, 0.0, None, None)

    odd = Library.__new__(Library)
    odd.__dict__.update(library.__dict__)
    odd.layers = broken
    layers, config = decoder.weights.layers, decoder.config
    assert fault(config, layers, library, (1,)) is None
    assert word in (fault(config, layers, odd, (1,)) or "")


@needs_compiler
def test_it_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path))
    first = compiled()
    assert first.parent == tmp_path / "kernels" and list(first.parent.iterdir()) == [first]
    before = first.stat().st_mtime_ns
    assert compiled() == first and first.stat().st_mtime_ns == before
    monkeypatch.setattr(compiler, "_FLAGS", (*compiler._FLAGS, "-g0"))
    assert compiled() != first


@pytest.mark.parametrize(
    ("script", "word"), [(None, "no C compiler"), ("echo broken >&2; exit 3", "broken"), ("exit 0", "loaded")]
)
def test_without_a_compiler_torch_does_it(
    wide_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, word: str
) -> None:
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    if script is not None:
        fake = tmp_path / "bin" / "cc"
        fake.parent.mkdir()
        # The last one makes the file it is asked for, but no library.
        fake.write_text(
            f'#!/bin/sh\nfor last; do [ "$before" = -o ] && : > "$last"; before=$last; done\n{script}\n'
        )
        fake.chmod(fake.stat().st_mode | stat.S_IEXEC)
    loaded = runtime(wide_model)
    assert not loaded.decoder.fused and word in loaded.decoder.note
    outcome = loaded.run(GenerationRequest((1, 2, 3), max_new_tokens=4), lambda chunk: None, lambda: None)
    assert len(outcome.token_ids) == 4


def test_models_that_need_more_use_torch(tmp_path: Path, tiny_home: Path) -> None:
    make_tiny(tmp_path / "qwen3", "qwen3", seed=3, head_dim=64)
    loaded = runtime(tmp_path / "qwen3")
    assert not loaded.decoder.fused and "lack" in loaded.decoder.note
    assert runtime(tmp_path / "qwen3", numerics="fp32").decoder.note == "not asked for"
