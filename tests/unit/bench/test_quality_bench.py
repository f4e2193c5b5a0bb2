"""The quality bench from the command line: every answer is in the file, and a stop keeps what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.journal import load
from bench.peers.base import Decoded, PeerFailed, Prompt
from bench.quality.answers import Infilled
from bench.quality.draftline_infill import ABLATIONS
from bench.records import Answer
from inference.runtime import Runtime
from lsp_server.cli import main
from tests.unit.bench.quality_tasks import EDIT, LINE, SPAN, write_tasks


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tiny_home: Path) -> None:
    monkeypatch.delenv("DRAFTLINE_BENCH_DATA", raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    return write_tasks(directory)


def _bench(model: Path, data: Path, out: Path, *more: str) -> int:
    arguments = ["--model", str(model), "--data", str(data), "--out", str(out), "--max-new-tokens", "16"]
    return main(["bench", "quality", *arguments, *more])


def _answers(out: Path) -> list[Answer]:
    (run,) = load([out])
    return [record for record in run.records if isinstance(record, Answer)]


def test_every_task_is_answered_in_every_variant(looping_model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    variants = "psm/all,psm/oracle"
    assert _bench(looping_model, data, out, "--numerics", "int8,fp32", "--variants", variants) == 0
    answers = _answers(out)
    ways = {(each.set, each.item, each.variant, each.numerics) for each in answers}
    gaps = {
        (name, f"{item}/{number}", variant, numerics)
        for name, item in (("single-line", "line"), ("random-span", "span"))
        for number in (0, 1)
        for variant in variants.split(",")
        for numerics in ("int8", "fp32")
    }
    # Numerics are compared by what a user gets.
    edits = {
        ("edit", f"edit/{number}", "parsed, auto", numerics)
        for number in (0, 1)
        for numerics in ("int8", "fp32")
    }
    assert ways == gaps | edits
    assert len(answers) == len(ways)
    for each in answers:
        assert each.system == "draftline"
        assert each.passed is not None and each.passed == (each.failure == "")
        assert each.ms > 0 and each.tokens
    (run,) = load([out])
    assert run.run.options["sets"] == {"single-line": 2, "random-span": 2, "edit": 2}
    assert run.run.systems["draftline"]["numerics"] == "int8, fp32"


def test_each_filter_and_stop_is_left_out_of_one_generation(
    looping_model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, requests = Runtime.run, []

    def counted(self: Runtime, request: Any, *arguments: Any) -> Any:
        requests.append(request)
        return run(self, request, *arguments)

    monkeypatch.setattr(Runtime, "run", counted)
    out = tmp_path / "out.jsonl"
    arguments = ["--sets", "single-line", "--variants", "spm/all", "--no-tests", "--ablate"]
    assert _bench(looping_model, data, out, *arguments) == 0
    answers = _answers(out)
    assert {each.variant for each in answers} == {"spm/all", *ABLATIONS}
    assert {"spm/without:rejoins", "spm/without:blank"} <= set(ABLATIONS)
    assert len(requests) == 2 * 2  # for each task one with stops, one without


def test_records_name_the_mix(looping_model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    switches = [
        "--numerics",
        "nf4,llm-int8",
        "--mixed",
        "layers.0.*=bf16, head=fp32",
        "--sets",
        "single-line",
    ]
    assert _bench(looping_model, data, out, *switches, "--variants", "psm/all", "--no-tests") == 0
    mix = "+layers.0.*=bf16,head=fp32"
    assert {each.numerics for each in _answers(out)} == {"nf4" + mix, "llm-int8" + mix}
    (run,) = load([out])
    assert run.run.systems["draftline"]["numerics"] == f"nf4{mix}, llm-int8{mix}"


def test_quick_and_no_tests(looping_model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, data, out, "--quick", "--no-tests") == 0
    answers = _answers(out)
    assert {each.variant for each in answers} == {
        "spm/all",
        "spm/none",
        *(f"{reading}, {draft}" for reading in ("raw", "parsed") for draft in ("auto", "none")),
    }
    assert {each.set for each in answers} == {"single-line", "random-span", "edit"}
    assert all(each.passed is None and each.failure == "" for each in answers)


def test_the_environment_names_the_data(
    looping_model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLINE_BENCH_DATA", str(data))
    out = tmp_path / "out.jsonl"
    arguments = ["--model", str(looping_model), "--sets", "edit", "--count", "1", "--out", str(out)]
    assert main(["bench", "quality", *arguments]) == 0
    assert len(_answers(out)) == 4


def test_a_stop_keeps_what_was_answered(
    looping_model: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, calls = Runtime.run, []

    def stopped(self: Runtime, *arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(Runtime, "run", stopped)
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, data, out, "--variants", "psm/all", "--no-tests") == 0
    assert len(_answers(out)) == 2
    captured = capsys.readouterr()
    assert "what was measured up to here counts" in captured.err
    assert str(out) in captured.err


class OraclePeer:
    """Knows the canonical answers to gaps and edits."""

    name = "llama-server q8_0"
    variants = ("llama.vim",)
    modes = ("plain",)

    def __init__(self) -> None:
        self.stopped = 0
        self.broken = False

    def start(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"numerics": "q8_0", "version": "b1"}

    def infill(self, prefix: str, suffix: str, variant: str) -> Infilled:
        if self.broken:
            raise PeerFailed("llama-server ended")
        return Infilled("    result = n + n" if prefix == LINE["prompt"] else " * 2", 1.0, 5)

    def decode(self, prompt: Prompt, mode: str, max_tokens: int, stop_ids: frozenset[int]) -> Decoded:
        solution = EDIT["output"] if EDIT["instruction"] in prompt.text else "wrong"
        return Decoded(f"{solution}\n```", (), 9, 9, 0, 1.0, 1.0, 2.0, None, None, None)

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> OraclePeer:
    peer = OraclePeer()
    monkeypatch.setattr("bench.peers.choose.infiller_for", lambda spec, settings: peer)
    monkeypatch.setattr("bench.peers.choose.decoder_for", lambda spec, settings: peer)
    return peer


def test_a_peer_answers_the_same_tasks(
    looping_model: Path, data: Path, tmp_path: Path, peer: OraclePeer
) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, data, out, "--variants", "psm/all", "--peer", "x") == 0
    answers = _answers(out)
    theirs = [each for each in answers if each.system == peer.name]
    ours = [each for each in answers if each.system == "draftline"]
    assert {(each.set, each.item) for each in theirs} == {(each.set, each.item) for each in ours}
    assert {each.numerics for each in theirs} == {"q8_0"}
    right = {each.item: each.passed for each in theirs}
    assert right == {
        "line/0": True,
        "line/1": True,
        "span/0": True,
        "span/1": True,
        "edit/0": True,
        "edit/1": False,
    }
    (run,) = load([out])
    assert run.run.systems[peer.name]["version"] == "b1"
    assert peer.stopped


def test_a_peer_that_ends_keeps_what_was_answered(
    looping_model: Path,
    data: Path,
    tmp_path: Path,
    peer: OraclePeer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    peer.broken = True
    out = tmp_path / "out.jsonl"
    assert (
        _bench(looping_model, data, out, "--variants", "psm/all", "--peer", "x", "--sets", "random-span") == 1
    )
    assert "llama-server ended" in capsys.readouterr().err
    (answer,) = _answers(out)
    assert answer.item.startswith(SPAN["task_id"].partition("/")[0])
    assert peer.stopped


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "DRAFTLINE_BENCH_DATA"),
        (["--data", "/nowhere"], "/nowhere is not a directory"),
        (["--sets", "single"], "random-span"),
        (["--variants", "psm"], "spm/no-stops"),
        (["--numerics", "int8,int3"], "bf16"),
        (["--count", "0"], "--count"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "quality", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_wrong_peers_are_refused_before_anything_is_loaded(
    data: Path, capsys: pytest.CaptureFixture[str], peer: OraclePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["bench", "quality", "--data", str(data), "--model", "/nowhere", "--peer", "x"]
    assert main([*arguments, "--peer", "x"]) == 2
    assert "more than once" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(arguments) == 2
    assert "--peer x is not understood" in capsys.readouterr().err


def test_missing_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "quality", "--data", str(tmp_path)]) == 1
    assert "openai/human-eval-infilling" in capsys.readouterr().err


def test_edits_that_do_not_fit_are_refused(
    looping_model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _bench(looping_model, data, tmp_path / "out.jsonl", "--context", "64") == 2
    assert "raise --context" in capsys.readouterr().err
