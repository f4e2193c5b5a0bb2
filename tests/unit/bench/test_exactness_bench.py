"""The exactness bench passes on a sound decoder, and fails on one that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bench.exactness import CHUNKS, QUICK_VARIANTS, VARIANTS
from bench.places import default_corpus, sample
from inference.model.decoder import Decoder
from lsp_server.cli import main

ROOT = Path(__file__).parents[3]


def _bench(model: Path, out: Path, *more: str) -> int:
    repo = str(ROOT / "lsp_server" / "completion")
    arguments = ["--model", str(model), "--repo", repo, "--count", "2", "--out", str(out), *more]
    return main(["bench", "exactness", *arguments])


def test_a_sound_decoder_passes(
    looping_model: Path, tiny_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["record"] == "run" and lines[0]["machine"]["cores"] >= 1
    lines = [line for line in lines if line["record"] == "compared"]
    assert len(lines) == 2 * (len(VARIANTS) - 1)
    assert all(line["same_tokens"] and line["same_logits"] for line in lines)
    assert {line["chunk"] for line in lines} == set(CHUNKS)
    assert "(100.0%); equal bits are promised here" in capsys.readouterr().out


def test_other_numerics_and_mixes_pass_too(looping_model: Path, tiny_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--numerics", "llm-int8", "--mixed", "layers.1.*=nf4", "--quick") == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    facts = lines[0]["systems"]["draftline"]
    assert facts["numerics"] == "llm-int8+layers.1.*=nf4" and facts["promised"]
    assert all(line["same_tokens"] and line["same_logits"] for line in lines[1:])


def test_a_decoder_that_looks_at_its_block_fails(
    looping_model: Path,
    tiny_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forward = Decoder.forward

    def unsound(self: Decoder, tokens: list[int], *rest: object) -> torch.Tensor | None:
        logits = forward(self, tokens, *rest)  # type: ignore[arg-type]
        return logits if logits is None or len(tokens) < 4 else logits + 2.0**-10

    monkeypatch.setattr(Decoder, "forward", unsound)
    assert _bench(looping_model, tmp_path / "out.jsonl", "--quick") == 1
    assert "differs: " in capsys.readouterr().out


def test_a_run_without_drafts_proves_nothing(
    looping_model: Path, tiny_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.exactness.QUICK_VARIANTS", QUICK_VARIANTS[:2])
    assert _bench(looping_model, tmp_path / "out.jsonl", "--quick") == 1


@pytest.mark.parametrize("arguments", [["--repo", "/nowhere"], ["--count", "0"], ["--threads", "0"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert main(["bench", "exactness", *arguments]) == 2


def test_places_are_the_same_for_the_same_seed_and_leave_gaps() -> None:
    places = sample(default_corpus(), 12, seed=3)
    assert places == sample(default_corpus(), 12, seed=3)
    assert places != sample(default_corpus(), 12, seed=4)
    assert len({place.path for place in places}) == 12
    for place in places:
        original = (default_corpus() / place.path).read_text(encoding="utf-8")
        line = place.snapshot.line(place.cursor.line)
        assert len(line) == place.cursor.column
        assert line + place.removed in original.replace("\r\n", "\n")
        assert len(place.removed) >= 2
