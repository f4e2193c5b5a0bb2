"""Recorded forwards, with a recorder that needs no GPU: the plain layers' numbers, whatever the width."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inference.api import EngineConfig, GenerationRequest
from inference.cache.kv import KV_BUCKET, KvSlot
from inference.model import decoder as decoder_module
from inference.model.decoder import Decoder
from inference.model.graphs.block import Rows, causal_rows
from inference.model.graphs.capture import CudaCapture
from inference.model.graphs.stack import FIXED_WIDTH, WIDTHS, GraphStack
from inference.model.layers import TorchStack
from inference.model.linear.padded import PaddedLinear
from inference.model.rope import RopeTable
from inference.runtime import Runtime, load_runtime

CPU = torch.device("cpu")
CONTEXT = 2 * KV_BUCKET


class _Recorder:
    """Runs the recorded function again, as a graph would; it too knows nothing but the buffers."""

    def __init__(self, failing: bool = False) -> None:
        self.failing, self.recorded, self.replayed = failing, 0, 0

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        if self.failing:
            raise RuntimeError("operation not permitted\nwhen stream is capturing")
        function()  # a warm-up: it must leave nothing behind that the real run would not
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            function()

        return replay


@pytest.fixture(scope="module")
def runtime(looping_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_HOME", str(tmp_path_factory.mktemp("home")))
        options = EngineConfig(model=str(looping_model), numerics="fp32", context=CONTEXT)
        yield load_runtime(options, lambda message, fraction: None)


def _plain(runtime: Runtime) -> TorchStack:
    rope = RopeTable(runtime.config, CONTEXT, CPU)
    return TorchStack(runtime.config, runtime.decoder.weights.layers, rope, (1, 4, 16))


def _stack(runtime: Runtime, recorder: _Recorder, widths: tuple[int, ...] = (FIXED_WIDTH,)) -> GraphStack:
    rope = RopeTable(runtime.config, CONTEXT, CPU)
    layers = runtime.decoder.weights.layers
    return GraphStack(runtime.config, layers, rope, recorder, _plain(runtime), widths)


def _feed(
    stack: TorchStack | GraphStack, runtime: Runtime, x: torch.Tensor, blocks: list[int]
) -> tuple[torch.Tensor, KvSlot]:
    slot = runtime.decoder.new_slot(CONTEXT)
    parts, row = [], 0
    with torch.inference_mode():
        for block in blocks:
            parts.append(stack(x[row : row + block].clone(), slot))
            slot.tokens += [0] * block
            row += block
    assert row == x.shape[0]
    return torch.cat(parts), slot


def _hidden(runtime: Runtime, rows: int) -> torch.Tensor:
    return torch.randn(rows, runtime.config.hidden_size, generator=torch.Generator().manual_seed(4))


def _same_cache(a: KvSlot, b: KvSlot, exactly: bool) -> None:
    for ours, theirs in ((a.keys, b.keys), (a.values, b.values)):
        for left, right in zip(ours, theirs, strict=True):
            assert torch.equal(left, right) if exactly else torch.allclose(left, right, atol=1e-4)


@pytest.mark.parametrize("widths", [(FIXED_WIDTH,), WIDTHS])
def test_the_numbers_of_the_plain_layers(runtime: Runtime, widths: tuple[int, ...]) -> None:
    """Over the end of a bucket, with prompts wider than a width, and up to the last place of the slot."""
    blocks = [100, 1, 7, 32, 3, 360, 20, 1, 16, 484]
    assert sum(blocks) == CONTEXT
    x = _hidden(runtime, CONTEXT)
    right, full = _feed(_plain(runtime), runtime, x, blocks)
    recorder = _Recorder()
    result, slot = _feed(_stack(runtime, recorder, widths), runtime, x, blocks)
    assert torch.allclose(result, right, atol=1e-4)
    _same_cache(slot, full, exactly=False)
    assert recorder.replayed > recorder.recorded > 1


def test_with_one_width_a_row_has_the_same_bits_in_any_block(runtime: Runtime) -> None:
    x = _hidden(runtime, 540)
    whole, slot = _feed(_stack(runtime, _Recorder()), runtime, x, [540])
    for blocks in ([1] * 540, [128, 128, 128, 100, 1, 8, 32, 15], [500, 11, 1, 2, 26]):
        parts, other = _feed(_stack(runtime, _Recorder()), runtime, x, blocks)
        assert torch.equal(parts, whole)
        _same_cache(slot, other, exactly=True)


def test_widths_and_buckets_are_recorded_once_for_each_slot(runtime: Runtime) -> None:
    recorder = _Recorder()
    stack = _stack(runtime, recorder, WIDTHS)
    x = _hidden(runtime, 60)
    _, first = _feed(stack, runtime, x, [1, 1, 2, 3, 4, 5, 8, 9, 16, 11])
    assert recorder.recorded == 5  # 1, 2, 4, 8 and 16; nothing was wider
    assert recorder.replayed == 10
    _, second = _feed(stack, runtime, x[:2], [1, 1])
    assert recorder.recorded == 6  # other addresses
    assert len(stack._recorded) == 2
    first.truncate(0)
    stack(x[:1].clone(), first)
    assert recorder.recorded == 6
    first.keys = [layer.clone() for layer in first.keys]  # moved, as by a resize
    stack(x[:1].clone(), first)
    assert recorder.recorded == 7
    del first, second
    gc.collect()
    assert len(stack._recorded) == 0, "recordings must not keep slots alive"


def test_blocks_beyond_the_widest_of_many_widths_run_eagerly(runtime: Runtime) -> None:
    recorder = _Recorder()
    x = _hidden(runtime, 100)
    result, _ = _feed(_stack(runtime, recorder, WIDTHS), runtime, x, [100])
    assert recorder.recorded == 0
    right, _ = _feed(_plain(runtime), runtime, x, [100])
    assert torch.equal(result, right)


def test_a_cache_of_integers_is_not_touched(runtime: Runtime) -> None:
    recorder = _Recorder()
    stack, slot, x = _stack(runtime, recorder), runtime.decoder.new_slot(CONTEXT), _hidden(runtime, 3)
    stack._eager = lambda x, slot: x + 1  # type: ignore[assignment]
    slot.keys = [layer.to(torch.int8) for layer in slot.keys]
    assert torch.equal(stack(x, slot), x + 1) and recorder.recorded == 0
    with pytest.raises(ValueError, match="int8"):
        stack.run(x, causal_rows(0, 3, KV_BUCKET, CPU), slot)


def test_without_recording_the_same_bits_and_a_note(runtime: Runtime) -> None:
    x = _hidden(runtime, 50)
    failing = _stack(runtime, _Recorder(failing=True))
    assert failing.note == ""
    result, _ = _feed(failing, runtime, x, [40, 1, 9])
    right, _ = _feed(_stack(runtime, _Recorder()), runtime, x, [40, 1, 9])
    assert torch.equal(result, right)
    assert "operation not permitted" in failing.note and "\n" not in failing.note


def test_a_tree_of_candidates_sees_its_own_branch(runtime: Runtime) -> None:
    """Two branches behind one prefix: each row as if its branch had been fed alone."""
    x = _hidden(runtime, 14)
    prefix, left, right = x[:10], x[10:12], x[12:14]
    stack = _stack(runtime, _Recorder())
    slot = runtime.decoder.new_slot(CONTEXT)
    with torch.inference_mode():
        stack(prefix.clone(), slot)
        slot.tokens += [0] * 10
        positions = torch.tensor([10, 11, 10, 11])
        places = torch.tensor([10, 11, 12, 13])
        visible = torch.zeros(4, KV_BUCKET, dtype=torch.bool)
        visible[:, :10] = True
        for row, seen in enumerate(([10], [10, 11], [12], [12, 13])):
            visible[row, seen] = True
        tree = stack.run(x[10:].clone(), Rows(positions, places, visible), slot)
    for branch, rows in ((left, tree[:2]), (right, tree[2:])):
        alone, _ = _feed(_plain(runtime), runtime, torch.cat((prefix, branch)), [10, 2])
        assert torch.allclose(rows, alone[10:], atol=1e-4)


def test_what_does_not_fit_is_refused(runtime: Runtime) -> None:
    stack, slot = _stack(runtime, _Recorder()), runtime.decoder.new_slot(CONTEXT)
    with pytest.raises(ValueError, match="width"):
        stack.run(_hidden(runtime, 33), causal_rows(0, 33, KV_BUCKET, CPU), slot)
    for bucket in (KV_BUCKET + 1, CONTEXT + KV_BUCKET):
        with pytest.raises(ValueError, match="mask"):
            stack.run(_hidden(runtime, 1), causal_rows(0, 1, bucket, CPU), slot)


def test_speculation_over_recorded_forwards_is_exact(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = GenerationRequest(
        tuple(range(20, 60)) * 4, max_new_tokens=60, digest_logits=True, use_cache=False, draft="none"
    )

    def answer(draft: str) -> tuple[tuple[int, ...], str, int]:
        outcome = runtime.run(
            replace(request, draft=draft),  # type: ignore[arg-type]
            lambda chunk: None,
            lambda: None,
        )
        return outcome.token_ids, outcome.logits_sha256, outcome.accepted

    tokens = answer("none")[0]
    decoder, recorder = runtime.decoder, _Recorder()
    monkeypatch.setattr(decoder, "_stack", _stack(runtime, recorder))
    monkeypatch.setattr(decoder, "_head", PaddedLinear(decoder.weights.head, FIXED_WIDTH))
    plain, drafted = answer("none"), answer("ngram")
    assert plain[0] == tokens and recorder.replayed > 60
    assert drafted[:2] == plain[:2] and drafted[2] > 0


def test_a_padded_layer_has_one_shape() -> None:
    seen = []

    class Doubling:
        private_bytes = 0

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.shape)
            return 2 * x

    x = torch.randn(11, 3)
    assert torch.equal(PaddedLinear(Doubling(), 4)(x), 2 * x)
    assert torch.equal(PaddedLinear(Doubling(), 4)(x[:4]), 2 * x[:4])
    assert set(seen) == {torch.Size((4, 3))}


def test_cuda_decoders_use_it(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        decoder_module, "RopeTable", lambda config, length, device: RopeTable(config, length, CPU)
    )
    config, weights = runtime.config, runtime.decoder.weights
    cuda = Decoder(config, weights, CONTEXT, torch.device("cuda"))
    assert isinstance(cuda._stack, GraphStack) and isinstance(cuda._stack._capture, CudaCapture)
    assert isinstance(cuda._head, PaddedLinear) and cuda._head.tile == cuda._stack.widths[0]
    cuda._stack.note = "because"
    assert cuda.graph_note == "because"
    mps = Decoder(config, weights, CONTEXT, torch.device("mps"))
    assert type(mps._stack) is TorchStack and mps._head is weights.head and mps.graph_note == ""


def test_cuda_capture_warms_up_before_it_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of calls only: there is no GPU in the tests."""
    events: list[str] = []

    class Stream:
        def __init__(self, *device: object) -> None:
            pass

        def wait_stream(self, other: Stream) -> None:
            events.append("wait")

        def __enter__(self) -> None:
            events.append("on stream")

        def __exit__(self, *error: object) -> None:
            events.append("off stream")

    class Graph:
        def replay(self) -> None:
            events.append("replay")

    class Recording(Stream):
        def __init__(self, graph: Graph, pool: str, stream: Stream) -> None:
            assert pool == "pool"

        def __enter__(self) -> None:
            events.append("record")

        def __exit__(self, *error: object) -> None:
            events.append("recorded")

    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", Recording)
    replay = CudaCapture(torch.device("cuda"))(lambda: events.append("run"))
    replay()
    runs = ["run"] * 3
    assert events == ["wait", "on stream", *runs, "off stream", "wait", "record", "run", "recorded", "replay"]
