"""The soak bench passes on an engine that keeps nothing, and sees one that does."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.journal import load
from bench.records import Sample
from bench.soak.editor import SESSION, Editor, NoFiles
from bench.soak.verdict import summarise
from inference.generation import Generator
from inference.tokenizer import Tokenizer
from lsp_server.cli import main
from lsp_server.completion.options import CompletionOptions
from tests.tiny_models import make_tokenizer
from tests.unit.bench.made_up_records import sample

ROOT = Path(__file__).parents[3]
REPO = ROOT / "bench"


def _bench(model: Path, out: Path, *more: str) -> int:
    # Small blocks have few sizes, and with them few kernels to be built.
    small = ["--kv-budget", "8", "--prefill-chunk", "16"]
    # The memory of other tests is that of the same process.
    small += ["--allowance", "8000"]
    arguments = ["--model", str(model), "--repo", str(REPO), *small, "--out", str(out)]
    return main(["bench", "soak", *arguments, *more])


def _samples(out: Path) -> list[Sample]:
    (results,) = load([out])
    return [record for record in results.records if isinstance(record, Sample)]


def test_a_sound_engine_passes(
    looping_model: Path, tiny_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--requests", "240") == 0
    samples = _samples(out)
    assert [each.requests for each in samples] == [*range(10, 241, 10)]
    last = samples[-1]
    assert last.answered + last.cancelled + last.superseded == 240 and last.failed == 0
    assert min(last.answered, last.cancelled, last.superseded) > 0
    assert max(each.documents for each in samples) > 1
    assert last.private_bytes is not None and last.private_bytes < last.promised_bytes
    assert "Verdict: passed." in capsys.readouterr().out


def test_a_leak_of_memory_and_threads_is_seen(
    looping_model: Path,
    tiny_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept: list[bytearray] = []
    over = threading.Event()
    generate = Generator.generate

    def leaking(self: Generator, *arguments: Any) -> Any:
        kept.append(bytearray(b"x" * 400_000))
        threading.Thread(target=over.wait, daemon=True).start()
        return generate(self, *arguments)

    monkeypatch.setattr(Generator, "generate", leaking)
    try:
        assert _bench(looping_model, tmp_path / "out.jsonl", "--requests", "240") == 1
    finally:
        over.set()
    said = capsys.readouterr().err
    assert "private memory grew by" in said and "threads grew from" in said


def test_a_failing_engine_is_seen(
    looping_model: Path,
    tiny_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    generate, calls = Generator.generate, []

    def failing(self: Generator, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 50:
            raise RuntimeError("made up")
        return generate(self, *arguments)

    monkeypatch.setattr(Generator, "generate", failing)
    assert _bench(looping_model, tmp_path / "out.jsonl", "--requests", "150") == 1
    assert "1 requests failed: RuntimeError: made up" in capsys.readouterr().err


def test_a_stop_keeps_what_was_seen(
    looping_model: Path, tiny_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Editor.steps

    def stopped(self: Editor, count: int) -> Iterator[Any]:
        for number, step in enumerate(steps(self, count)):
            if number == 35:
                raise KeyboardInterrupt
            yield step

    monkeypatch.setattr(Editor, "steps", stopped)
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--requests", "240") == 1
    assert [each.requests for each in _samples(out)] == [10, 20, 30]


def test_minutes_bound_a_run(looping_model: Path, tiny_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--minutes", "0.001") == 1
    assert 0 < _samples(out)[-1].requests < 5000


@pytest.mark.parametrize(
    "arguments",
    [["--repo", "/nowhere"], ["--requests", "0"], ["--every", "0"], ["--minutes", "0"], ["--allowance", "0"]],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert main(["bench", "soak", *arguments]) == 2


def test_nothing_to_type_in(looping_model: Path, tiny_home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    arguments = ["--model", str(looping_model), "--repo", str(tmp_path / "empty")]
    assert main(["bench", "soak", *arguments]) == 1


def _editor(tmp_path: Path, seed: int = 0) -> Editor:
    make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    return Editor(Tokenizer(tmp_path / "tokenizer.json"), 2048, CompletionOptions(), REPO, seed)


def test_a_day_in_an_editor(tmp_path: Path) -> None:
    steps = list(_editor(tmp_path).steps(2 * SESSION))
    assert steps == list(_editor(tmp_path).steps(2 * SESSION))
    assert steps != list(_editor(tmp_path, seed=1).steps(2 * SESSION))
    assert {step.then for step in steps} == {"wait", "go on", "cancel"}
    opened: set[str] = set()
    closed: set[str] = set()
    for step in steps:
        closed.update(step.closes)
        assert step.request.document not in closed
        opened.add(step.request.document)
    assert len(opened) > 5 and opened - closed, "some are still open"
    assert closed >= {step.request.document for step in steps[:SESSION]}, "closed with the editor"
    lengths = [len(step.request.prompt) for step in steps]
    assert max(lengths) <= 256 and sorted(lengths)[len(lengths) // 2] > 64
    # Typing on one line changes the end of the prompt alone.
    pairs = itertools.pairwise(steps)
    kept = [
        sum(one == other for one, other in zip(a.request.prompt, b.request.prompt, strict=False))
        for a, b in pairs
        if a.request.document == b.request.document
    ]
    assert sum(kept) / len(kept) > 100


def test_no_files(tmp_path: Path) -> None:
    make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    codec = Tokenizer(tmp_path / "tokenizer.json")
    with pytest.raises(NoFiles):
        Editor(codec, 2048, CompletionOptions(), tmp_path, 0)


def _growing(**changes: Any) -> list[Sample]:
    """100 samples; a change is how much a figure grows from sample to sample."""
    start = sample()
    return [
        sample(
            requests=n, answered=n - 20, **{key: getattr(start, key) + by * n for key, by in changes.items()}
        )
        for n in range(30, 130)
    ]


def test_what_the_verdict_sees() -> None:
    def problems(samples: list[Sample]) -> list[str]:
        summary = summarise(samples)
        assert summary is not None
        return summary.problems

    assert problems(_growing()) == []
    assert problems(_growing(private_bytes=200_000, threads=0.05, objects=100)) == []
    assert "private memory grew by 22 MB" in problems(_growing(private_bytes=300_000))[0]
    assert "threads grew" in problems(_growing(python_threads=1))[0]
    assert "threads grew" in problems(_growing(threads=1))[0]
    assert "open files grew" in problems(_growing(files=1))[0]
    assert (
        "more than the promised"
        in problems([*_growing(), sample(requests=150, answered=130, private_bytes=2_000_000_000)])[0]
    )
    assert "5 requests were never answered" in problems([*_growing(), sample(requests=155, answered=130)])[0]
    assert "too few samples" in problems(_growing()[:10])[0]
    assert any(
        "not all of these happened" in each
        for each in problems([*_growing(), sample(cancelled=0, requests=140, answered=130)])
    )
    assert summarise([]) is None
