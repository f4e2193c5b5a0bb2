"""The exactness bench passes on a sound decoder, and fails on one that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bench.exactness.prompts import PromptSource, Sources
from bench.exactness.variants import CACHES, CHUNKS, DRAFTS, LIMITS, LONG, TEMPERATURES, Variants
from bench.exactness.verdict import verdict
from bench.journal import RunResults, load
from bench.places import default_corpus, sample
from bench.quality.datasets import EditTask
from bench.records import Checked, CheckedWay, Restarted
from inference.model.decoder import Decoder
from inference.tokenizer import Tokenizer
from lsp_server.cli import main
from lsp_server.completion.options import CompletionOptions
from tests.tiny_models import make_tokenizer
from tests.unit.bench.quality_tasks import EDIT, write_tasks

ROOT = Path(__file__).parents[3]
REPO = ROOT / "lsp_server" / "completion"


def _bench(model: Path, out: Path, *more: str) -> int:
    return main(["bench", "exactness", "--model", str(model), "--repo", str(REPO), "--out", str(out), *more])


def _results(out: Path) -> tuple[RunResults, list[Checked]]:
    (results,) = load([out])
    return results, [record for record in results.records if isinstance(record, Checked)]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAFTLINE_BENCH_DATA", raising=False)


def test_a_sound_decoder_passes(
    looping_model: Path, tiny_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    data = str(write_tasks(tmp_path / "data"))
    out = tmp_path / "out.jsonl"
    more = ("--data", data, "--count", "40", "--max-prompt", "2100", "--no-restart")
    assert _bench(looping_model, out, *more) == 0
    results, checked = _results(out)
    assert results.run.systems["draftline"]["context"] >= 2100 + 24
    assert len(checked) == 40 and all(len(record.ways) == 3 for record in checked)
    assert {record.set for record in checked} == set(results.run.options["kinds"])
    assert "edit" in results.run.options["kinds"]
    assert max(record.prompt_tokens for record in checked) > LONG
    assert len({record.digest for record in checked}) > 30
    ways = [way for record in checked for way in record.answers()]
    assert all(way.same for way in ways)
    assert {way.draft for way in ways} == set(DRAFTS) and {way.cache for way in ways} == set(CACHES)
    assert {way.threads for way in ways} == {1, 2}
    for cache in CACHES:
        of_cache = [way.cached_tokens for way in ways if way.cache == cache]
        assert of_cache, cache
        assert max(of_cache) > 0 or cache in ("fresh", "unrelated"), cache
        assert max(of_cache) == 0 or cache != "fresh"
    assert max(way.widest for way in ways) > 16, "wide forwards were among them"
    assert all(way.widest <= way.limit + 1 for way in ways)
    said = capsys.readouterr().out
    assert "identical: 120 of 120 answers (100.0%) to 40 prompts; equal bits are promised here" in said
    assert "| draft limit   | 31" in said


def test_changes_of_kernels_and_threads(looping_model: Path, tiny_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick", "--restart", "--kernels", "torch") == 0
    restarted = [record for record in _results(out)[0].records if isinstance(record, Restarted)]
    assert [record.change for record in restarted] == [
        "threads to 1",
        "kernels from torch to auto",
        "kernels from auto back to torch",
    ]
    assert all(record.answers == record.identical == 8 for record in restarted)


def test_other_numerics_and_mixes_pass_too(looping_model: Path, tiny_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--numerics", "llm-int8", "--mixed", "layers.1.*=nf4", "--quick") == 0
    results, checked = _results(out)
    facts = results.run.systems["draftline"]
    assert facts["numerics"] == "llm-int8+layers.1.*=nf4" and facts["promised"]
    ways = [way for record in checked for way in record.answers()]
    assert ways and all(way.same for way in ways)


def test_a_decoder_that_looks_at_its_block_fails(
    looping_model: Path,
    tiny_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forward = Decoder.forward

    def unsound(self: Decoder, tokens: list[int], *rest: Any) -> torch.Tensor | None:
        logits = forward(self, tokens, *rest)
        return logits if logits is None or len(tokens) < 4 else logits + 2.0**-10

    monkeypatch.setattr(Decoder, "forward", unsound)
    assert _bench(looping_model, tmp_path / "out.jsonl", "--quick") == 1
    assert "differs: " in capsys.readouterr().out


def test_a_cache_that_keeps_too_much_fails(
    looping_model: Path, tiny_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inference.cache.kv import KvSlot

    common = KvSlot.common_prefix
    # One token too many is taken for known: its keys are those of the text that stood there before.
    monkeypatch.setattr(
        KvSlot,
        "common_prefix",
        lambda self, prompt: min(common(self, prompt) + 1, len(self.tokens), len(prompt)),
    )
    out = tmp_path / "out.jsonl"
    assert _bench(looping_model, out, "--quick") == 1
    wrong = {way.cache for record in _results(out)[1] for way in record.answers() if not way.same}
    assert wrong and "fresh" not in wrong


def test_a_run_that_saw_too_little_proves_nothing(
    looping_model: Path, tiny_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--quick", "--count", "2", "--variants", "1")
    assert _bench(looping_model, tmp_path / "out.jsonl", *more) == 1
    assert "so this run proves nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--repo", "/nowhere"],
        ["--data", "/nowhere"],
        ["--count", "0"],
        ["--threads", "0"],
        ["--variants", "some"],
        ["--variants", "0"],
        ["--max-prompt", "0"],
        ["--minutes", "0"],
        ["--context", "512", "--max-prompt", "512"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert main(["bench", "exactness", *arguments]) == 2


def test_every_level_comes_up_about_as_often() -> None:
    variants = Variants(seed=5)
    drawn = [way for _ in range(300) for way in variants.draw(3, 100)]
    counts = {
        value: sum(value in (way.draft, way.cache, way.chunk) for way in drawn)
        for value in (*DRAFTS, *CACHES, *CHUNKS)
    }
    assert all(abs(counts[draft] - 300) <= 1 for draft in DRAFTS)
    assert all(abs(counts[cache] - 180) <= 1 for cache in CACHES)
    assert all(abs(sum(way.limit == limit for way in drawn) - 150) <= 1 for limit in LIMITS)
    assert drawn == [way for other in [Variants(seed=5)] for _ in range(300) for way in other.draw(3, 100)]
    long = [way for _ in range(110) for way in variants.draw(3, LONG + 1)]
    assert 0 < sum(way.cache in ("fresh", "unrelated") for way in long) <= len(long) / 5


def test_all_combinations_are_each_there_once() -> None:
    every = Variants(seed=0).every()
    assert len(every) == len(set(every)) == (1 + 2 * len(LIMITS)) * len(CACHES) * len(CHUNKS) * 2
    assert all((way.limit == 0) == (way.draft == "none") for way in every)
    assert "threads" not in Variants(seed=0, threads=()).levels()


def test_prompts_of_all_kinds_and_lengths(tmp_path: Path) -> None:
    make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    codec = Tokenizer(tmp_path / "tokenizer.json")
    task = EditTask(EDIT["task_id"], EDIT["instruction"], EDIT["input"], EDIT["output"], EDIT["test"])

    def source(tasks: tuple[EditTask, ...] = (task,), seed: int = 1) -> PromptSource:
        return PromptSource(codec, 9000, Sources(ROOT / "bench", tasks, seed), CompletionOptions(), 24, 8192)

    made = list(source().prompts(100))
    assert [prompt.request for prompt in made] == [prompt.request for prompt in source().prompts(100)]
    assert made != list(source(seed=2).prompts(100))
    assert {prompt.set for prompt in made} == set(source().shares)
    lengths = sorted(len(prompt.request.prompt) for prompt in made)
    assert lengths[-1] > 4000 and lengths[-1] <= 8192 and lengths[len(lengths) // 2] < 400
    assert len({prompt.request.document for prompt in made}) == 100
    assert all(prompt.earlier for prompt in made)
    for prompt in made:
        assert prompt.request.max_new_tokens in (24, 48) and prompt.request.digest_logits
        assert all(key.document == prompt.request.document for key in prompt.earlier)
    assert sum(bool(prompt.request.heal) for prompt in made) > 5
    assert "edit" not in source(tasks=()).shares


def test_the_verdict_names_what_was_not_seen() -> None:
    way = CheckedWay("ngram", 4, "typed", 16, 1, 40, 8, 5, 6, 5, True, True)
    record = Checked("place", "a.py:1:1", 50, 24, 0.0, "d", [list(way)])
    wanted = {"drafter": ("none", "ngram"), "temperature": TEMPERATURES}
    result = verdict([record], wanted, promised=True)
    assert result.missing == ("drafter none", "temperature 0.8")
    assert not result.meaningful and not result.passed
    assert verdict([record], {"drafter": ("ngram",)}, promised=True).passed
    other = Checked("place", "a.py:1:1", 50, 24, 0.0, "d", [list(way._replace(same_logits=False))])
    assert not verdict([other], {}, promised=True).passed
    assert verdict([other], {}, promised=False).passed
    assert not verdict([record], {}, True, [Restarted("threads to 1", 8, 7)]).passed


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
