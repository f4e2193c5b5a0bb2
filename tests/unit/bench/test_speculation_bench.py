"""The speculation bench records what was decoded, and sees a decoder whose drafts change tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.journal import RunResults, load
from bench.peers.base import Decoded, PeerFailed, Prompt, Usage
from bench.peers.draftline_engine import DraftlineDecoder
from bench.records import Bandwidth, Call, Forward, Memory, Part, Prefill
from bench.report.speculation import by_drafter
from bench.speculation import extent as extents
from inference.drafting.model_worth import Costs, ModelWorth
from inference.model.decoder import Decoder
from lsp_server.cli import main
from tests.tiny_models import make_drafter, make_tiny
from tests.unit.bench.quality_tasks import write_tasks

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tiny_home: Path) -> None:
    """Seconds of floors, pauses and long prompts are for real machines."""
    monkeypatch.setattr("bench.speculation.roofline.BUFFER_BYTES", 1 << 20)
    monkeypatch.setattr("bench.speculation.roofline.INT8_SHAPE", (16, 64))
    monkeypatch.setattr("bench.speculation.roofline.FLOAT_SIZE", 64)
    monkeypatch.setattr("bench.speculation.decode.PAUSE_S", 0.0)
    monkeypatch.setattr("lsp_server.commands.bench.BENCHES", ("speculation",))
    monkeypatch.delenv("DRAFTLINE_BENCH_DATA", raising=False)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of each kind."""
    return write_tasks(tmp_path_factory.mktemp("data"))


class FakePeer:
    """Answers at once with known figures; ``failing`` is raised by the call of that number."""

    name = "fake"
    modes = ("plain", "fast")

    def __init__(self, failing: tuple[int, BaseException] | None = None) -> None:
        self.failing = failing
        self.asked: list[tuple[Prompt, str, int, frozenset[int]]] = []
        self.running = False

    def start(self) -> None:
        self.running = True

    def describe(self) -> dict[str, Any]:
        return {"numerics": "q8_0", "version": "7"}

    def decode(
        self,
        prompt: Prompt,
        mode: str,
        max_tokens: int,
        stop_ids: frozenset[int],
        stops: tuple[str, ...] = (),
    ) -> Decoded:
        assert self.running and stops == ()
        if self.failing is not None and len(self.asked) == self.failing[0]:
            raise self.failing[1]
        self.asked.append((prompt, mode, max_tokens, stop_ids))
        return Decoded("x", (7, 8), 2, len(prompt.ids), 0, 11.0, 12.0, 13.0, 4, 1, 1)

    def usage(self) -> Usage:
        return Usage(1.0, 2_000, 3_000)

    def stop(self) -> None:
        self.running = False


def _bench(model: Path, out: Path, *more: str) -> int:
    repo = str(ROOT / "lsp_server" / "completion")
    return main(["bench", "speculation", "--model", str(model), "--repo", repo, "--out", str(out), *more])


def _results(out: Path) -> RunResults:
    (results,) = load([out])
    return results


def _calls(results: RunResults) -> list[Call]:
    return [record for record in results.records if isinstance(record, Call)]


def _with_peer(monkeypatch: pytest.MonkeyPatch, peer: FakePeer) -> None:
    monkeypatch.setattr("bench.commands.speculation.decoder_for", lambda spec, settings: peer)


def test_all_modes_decode_the_same_tokens(looping_model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--data", str(data)) == 0
    results = _results(out)
    calls = [call for call in _calls(results) if not call.sweep]
    assert {(call.set, call.mode) for call in calls} == {
        (set, mode) for set in ("fim", "real", "edit", "fresh") for mode in ("none", "ngram", "auto")
    }
    assert len(calls) == 4 * 3
    for set in ("fim", "real", "edit", "fresh"):
        of_set = [call for call in calls if call.set == set]
        assert len({call.digest for call in of_set}) == 1 and of_set[0].digest
        assert len({call.tokens for call in of_set}) == 1
    for call in calls:
        assert len(call.steps) == call.forwards
        assert sum(step[1] for step in call.steps) == call.drafted
        # Tokens behind the end are checked, but never taken.
        assert sum(step[2] for step in call.steps) >= (call.accepted or 0)
        assert all(rows == drafted + 1 and ms > 0 for _, drafted, _, rows, ms, _ in call.steps)
        assert 0 < call.prompt_ms <= call.first_ms and call.cached_tokens == 0
        assert call.drafted == 0 or call.mode != "none"
    assert sum(call.accepted or 0 for call in calls) > 0
    assert results.run.options["tree_width"] == 1
    assert results.run.options["sets"] == {"fim": 1, "real": 1, "edit": 1, "fresh": 1}
    assert results.run.systems["draftline"]["bit_exact"] is True


def test_a_draft_model_is_passed_through(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = make_drafter(tmp_path / "draft", looping_model)
    # Made-up costs: the tiny models' own say that nothing pays.
    monkeypatch.setattr(ModelWorth, "costs", lambda self, plain_ms, row: Costs(0.05, 0.03))
    monkeypatch.setattr(ModelWorth, "pays", lambda self, ask, costs: True)
    out = tmp_path / "out.jsonl"
    switches = ("--quick", "--sets", "fresh", "--no-sweep", "--no-roofline", "--draft-model", str(draft))
    assert _bench(looping_model, out, *switches) == 0
    results = _results(out)
    calls = _calls(results)
    assert len({call.digest for call in calls}) == 1
    drafters = {call.mode: set(by_drafter([call])) for call in calls}
    assert "model" in drafters["auto"] and "model" not in drafters["ngram"]
    assert results.run.systems["draftline"]["draft_model"] == str(draft)
    memory = {record.draft: record for record in results.records if isinstance(record, Memory)}
    alone = tmp_path / "alone.jsonl"
    assert _bench(looping_model, alone, *switches[:-2]) == 0
    assert "draft_model" not in _results(alone).run.systems["draftline"]
    (before, *_) = [record for record in _results(alone).records if isinstance(record, Memory)]
    assert (memory["auto"].weight_bytes or 0) > (before.weight_bytes or 0)
    assert (memory["auto"].kv_bytes or 0) > (before.kv_bytes or 0)


def test_floors_forwards_prefills_and_memory(looping_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "fresh") == 0
    records = _results(out).records
    (bandwidth,) = [record for record in records if isinstance(record, Bandwidth)]
    assert bandwidth.bytes_per_second > 0 and bandwidth.threads >= 1
    assert (bandwidth.int8_ops_per_second or 0) > 0 and (bandwidth.float_ops_per_second or 0) > 0
    forwards = [record for record in records if isinstance(record, Forward)]
    quick = extents.QUICK
    shapes = {(rows, 256) for rows in quick.forward_rows} | {(1, each) for each in quick.forward_contexts}
    assert {(forward.rows, forward.context) for forward in forwards} == shapes
    assert len(forwards) == quick.forward_repeats * len(shapes)
    # hidden 64, inner 160, 4 + 2 * 2 heads of 16, 3 layers, vocabulary 512: int8 weights, float32 scales.
    blocks = 3 * (64 * 128 + 64 * 64 + 64 * 320 + 160 * 64)
    rows = 3 * (128 + 64 + 320 + 64)
    for forward in forwards:
        assert forward.ms > 0 and (forward.linear_ms or 0) > 0
        assert blocks + 512 * 64 < forward.weight_bytes <= blocks + 512 * 64 + 8 * (rows + 512)
    prefills = [record for record in records if isinstance(record, Prefill)]
    assert [prefill.tokens for prefill in prefills] == list(quick.prefill_tokens)
    short, long = prefills
    assert short.linear_ops == 2 * (64 * blocks + 512 * 64)
    assert long.linear_ops == 2 * (256 * blocks + 512 * 64)
    assert short.weight_bytes == forwards[0].weight_bytes
    assert long.weight_bytes is not None and short.weight_bytes < long.weight_bytes, "two blocks of 128"
    memory = [record for record in records if isinstance(record, Memory)]
    assert [each.draft for each in memory] == ["none", "auto"]
    for each in memory:
        assert each.weight_bytes == blocks + 512 * 64
        assert (each.private_bytes or 0) > each.weight_bytes and (each.kv_bytes or 0) > 0
        assert each.context == quick.memory_context


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_parts_of_a_forward(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, kernels: str) -> None:
    # Heads of the size that the compiled functions take.
    model = make_tiny(
        tmp_path_factory.mktemp("wide"), hidden_size=128, num_attention_heads=2, num_key_value_heads=1
    )
    out = tmp_path / "out.jsonl"
    assert _bench(model, out, "--quick", "--sets", "fresh", "--no-sweep", "--kernels", kernels) == 0
    parts = [record for record in _results(out).records if isinstance(record, Part)]
    quick = extents.QUICK
    shapes = {(rows, quick.parts_context) for rows in quick.parts_rows} | {(quick.parts_prefill, 0)}
    assert {(part.rows, part.context) for part in parts} == shapes
    names = ["whole", "qkv", "out", "gate_up", "down", "head", "attention", "row steps"]
    assert [part.name for part in parts] == names * len(shapes) * quick.forward_repeats
    assert all(part.ms > 0 for part in parts)
    found = {(part.name, part.rows): part for part in parts}
    assert found["qkv", 16].ops == 2 * 16 * 3 * 128 * 256
    assert found["qkv", 1].bytes == 3 * (128 + 2 * 4) * 256  # with float32 scales and biases
    assert found["head", 16].ops == 2 * 16 * 512 * 128
    assert found["head", 64].ops == 2 * 512 * 128, "a block of a prompt needs one row's logits"
    assert found["attention", 1].bytes == 3 * 2 * 4 * 64 * 257
    assert found["attention", 1].ops == 4 * 3 * 128 * 257
    assert (
        _results(out)
        .run.systems["draftline"]["other_steps"]
        .startswith("compiled" if kernels == "auto" else "torch")
    )


def test_the_sweep_keeps_to_its_limits(looping_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "real,fresh", "--no-roofline") == 0
    results = _results(out)
    assert not [record for record in results.records if isinstance(record, (Bandwidth, Forward, Prefill))]
    swept = [call for call in _calls(results) if call.sweep]
    limits = {f"ngram<={limit}": limit for limit in extents.QUICK.sweep_limits}
    assert {call.mode for call in swept} == {"none", *limits}
    for call in swept:
        most = max(drafted for _, drafted, *_ in call.steps)
        assert most == 0 if call.mode == "none" else most <= limits[call.mode]
    most_drafted = {mode: max(call.drafted or 0 for call in swept if call.mode == mode) for mode in limits}
    assert most_drafted["ngram<=15"] >= most_drafted["ngram<=1"] > 0


def test_no_sweep(looping_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "fresh", "--no-sweep", "--no-roofline") == 0
    assert not [call for call in _calls(_results(out)) if call.sweep]


def test_drafts_that_change_tokens_fail_the_bench(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forward = Decoder.forward

    def unsound(self: Decoder, tokens: list[int], *rest: Any) -> torch.Tensor | None:
        logits = forward(self, tokens, *rest)
        return logits if logits is None or not 2 <= len(tokens) <= 16 else logits.roll(1, dims=-1)

    monkeypatch.setattr(Decoder, "forward", unsound)
    more = ("--quick", "--sets", "real,fresh", "--no-roofline", "--no-sweep")
    assert _bench(looping_model, tmp_path / "out.jsonl", *more) == 1
    assert "other tokens than before: " in capsys.readouterr().out


def test_differing_tokens_are_only_reported_where_bits_are_not_promised(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decode, start = DraftlineDecoder.decode, DraftlineDecoder.start

    def other(self: DraftlineDecoder, prompt: Prompt, mode: str, *rest: Any) -> Decoded:
        decoded = decode(self, prompt, mode, *rest)
        return replace(decoded, token_ids=(1,)) if mode == "auto" else decoded

    def unpromising(self: DraftlineDecoder) -> None:
        start(self)
        self.bit_exact = False

    monkeypatch.setattr(DraftlineDecoder, "decode", other)
    monkeypatch.setattr(DraftlineDecoder, "start", unpromising)
    more = ("--quick", "--sets", "fresh", "--no-roofline", "--no-sweep")
    assert _bench(looping_model, tmp_path / "out.jsonl", *more) == 0
    assert "other tokens than before: fresh 0, mode auto" in capsys.readouterr().out


def test_a_peer_gets_the_same_prompts_and_its_figures_are_recorded(
    looping_model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = FakePeer()
    _with_peer(monkeypatch, peer)
    out = tmp_path / "out.jsonl"
    more = (
        "--count",
        "2",
        "--repeats",
        "2",
        "--data",
        str(data),
        "--no-roofline",
        "--no-sweep",
        "--peer",
        "x",
    )
    monkeypatch.setattr("bench.commands.speculation.FULL", extents.QUICK)
    assert _bench(looping_model, out, *more) == 0
    results = _results(out)
    assert results.run.systems["fake"]["version"] == "7"
    ours = [call for call in _calls(results) if call.system == "draftline"]
    theirs = [call for call in _calls(results) if call.system == "fake"]
    assert len(theirs) == 4 * 2 * 2 * 2 and {call.mode for call in theirs} == {"plain", "fast"}
    for call in theirs:
        assert (call.numerics, call.tokens, call.drafted, call.accepted) == ("q8_0", 2, 4, 1)
        assert (call.prompt_ms, call.first_ms, call.decode_ms) == (11.0, 12.0, 13.0)
        assert call.digest and call.steps == []
    lengths = {(call.set, call.item): call.prompt_tokens for call in ours}
    assert all(lengths[call.set, call.item] == call.prompt_tokens for call in theirs)
    # By turns: which way comes first differs between the prompts of a repeat.
    firsts = {}
    for call in _calls(results):
        firsts.setdefault((call.repeat, call.set, call.item), (call.system, call.mode))
    assert len(set(firsts.values())) > 3
    memory = [record for record in results.records if isinstance(record, Memory)]
    assert [(each.system, each.private_bytes) for each in memory if each.system == "fake"] == [
        ("fake", 2_000)
    ]
    assert not peer.running
    texts = {prompt.text for prompt, *_ in peer.asked}
    opened = "<|im_start|>assistant\n```python\n"
    assert any(text.startswith("<|fim_prefix|>") and "<|fim_suffix|>" in text for text in texts)
    assert any("Triple instead." in text and text.endswith(opened) for text in texts)
    assert all(
        max_tokens in set(extents.QUICK.max_tokens.values()) | {8} for _, _, max_tokens, _ in peer.asked
    )
    assert all(stop_ids for *_, stop_ids in peer.asked)


def test_ctrl_c_keeps_what_was_measured(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = FakePeer(failing=(3, KeyboardInterrupt()))
    _with_peer(monkeypatch, peer)
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "real,fresh", "--peer", "x") == 0
    said = capsys.readouterr()
    assert "stopped; what was measured up to here counts" in said.err
    assert 0 < len(_calls(_results(out))) < 2 * 5
    assert not peer.running
    assert str(out) in said.err, "the tables and the file are named all the same"


def test_a_peer_that_fails_ends_the_run_and_keeps_what_was_measured(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = FakePeer(failing=(3, PeerFailed("The fake went away. Start it again.")))
    _with_peer(monkeypatch, peer)
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "real,fresh", "--peer", "x") == 1
    assert "The fake went away. Start it again." in capsys.readouterr().err
    assert len(_calls(_results(out))) > 0
    assert not peer.running


def test_a_peer_that_does_not_start(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = FakePeer()

    def refuse() -> None:
        raise PeerFailed("There is no fake here. Install it.")

    peer.start = refuse  # type: ignore[method-assign]
    _with_peer(monkeypatch, peer)
    assert _bench(looping_model, tmp_path / "out.jsonl", "--quick", "--sets", "fresh", "--peer", "x") == 1
    assert "There is no fake here. Install it." in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_the_same_peer_twice_is_wrong_usage(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_peer(monkeypatch, FakePeer())
    more = ("--quick", "--sets", "fresh", "--peer", "x", "--peer", "x")
    assert _bench(looping_model, tmp_path / "out.jsonl", *more) == 2


def test_other_numerics_decode_some_prompts_after_the_first_was_freed(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    start, stop = DraftlineDecoder.start, DraftlineDecoder.stop

    def starting(self: DraftlineDecoder) -> None:
        loaded.append(self.numerics)
        assert len(loaded) == 1, "one at a time"
        start(self)

    def stopping(self: DraftlineDecoder) -> None:
        if self.numerics in loaded:
            loaded.remove(self.numerics)
        stop(self)

    monkeypatch.setattr(DraftlineDecoder, "start", starting)
    monkeypatch.setattr(DraftlineDecoder, "stop", stopping)
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "real,fresh", "--numerics", "int8,fp32") == 0
    records = _results(out).records
    others = [call for call in _calls(_results(out)) if call.numerics == "fp32"]
    assert {(call.set, call.mode) for call in others} == {
        (set, mode) for set in ("real", "fresh") for mode in ("none", "auto")
    }
    memory = [(each.numerics, each.draft) for each in records if isinstance(each, Memory)]
    assert memory == [("int8", "none"), ("int8", "auto"), ("fp32", "none"), ("fp32", "auto")]
    bytes_of = {each.numerics: each.weight_bytes for each in records if isinstance(each, Forward)}
    assert bytes_of["fp32"] > 3 * bytes_of["int8"]
    assert loaded == []


def test_without_data_two_sets_are_left_out(
    looping_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--no-roofline", "--no-sweep") == 0
    assert {call.set for call in _calls(_results(out))} == {"real", "fresh"}
    said = capsys.readouterr().err
    assert "the set fim is left out" in said and "the set edit is left out" in said and "--data" in said


def test_what_the_context_does_not_hold_is_left_out(
    looping_model: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    longer = replace(extents.QUICK, max_tokens={**extents.QUICK.max_tokens, "edit": 200})
    monkeypatch.setattr("bench.commands.speculation.QUICK", longer)
    out = tmp_path / "out.jsonl"
    more = ("--quick", "--sets", "real,edit,fresh", "--data", str(data), "--no-sweep", "--context", "262")
    assert _bench(looping_model, out, *more) == 0
    results = _results(out)
    assert {call.set for call in _calls(results)} == {"real", "fresh"}
    assert "the set edit is left out: there are no prompts for it that fit" in capsys.readouterr().err
    shapes = {(each.rows, each.context) for each in results.records if isinstance(each, Forward)}
    assert shapes == {(1, 256), (4, 256)}


def test_a_model_that_fills_no_gaps_decodes_the_other_sets(
    looping_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lsp_server.prompts.fim.FAMILIES", ())
    out = tmp_path / "out.jsonl"
    more = ("--quick", "--sets", "real,fresh", "--no-roofline", "--no-sweep")
    assert _bench(looping_model, out, *more) == 0
    assert {call.set for call in _calls(_results(out))} == {"fresh"}
    assert "the set real is left out: the model has no fill-in-the-middle format" in capsys.readouterr().err


def test_data_may_come_from_the_environment(
    looping_model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLINE_BENCH_DATA", str(data))
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--sets", "fim", "--no-roofline", "--no-sweep") == 0
    assert {call.set for call in _calls(_results(out))} == {"fim"}


@pytest.mark.parametrize(
    "more",
    [("--sets", "edit"), ("--sets", "edit", "--data", "{empty}")],
    ids=["nothing left to decode", "files missing"],
)
def test_nothing_to_decode_is_a_failure(looping_model: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    filled = [each.format(empty=tmp_path / "empty") for each in more]
    assert _bench(looping_model, tmp_path / "out.jsonl", "--quick", *filled) == 1
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--repo", "/nowhere"],
        ["--data", "/nowhere"],
        ["--count", "0"],
        ["--repeats", "0"],
        ["--sets", "fim,novel"],
        ["--sets", ""],
        ["--numerics", "int8,int3"],
        ["--peer", "abacus"],
        ["--device", "mps"],
        ["--threads", "0"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert main(["bench", "speculation", *arguments]) == 2
