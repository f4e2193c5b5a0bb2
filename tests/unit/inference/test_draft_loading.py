"""Which model may draft for which, and what both need of memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference.api import EngineConfig
from inference.cache.kv import KvSlot
from inference.diagnosis.measure import measure
from inference.draft_loading import DraftFiles, check_vocabularies, find_draft_model
from inference.engine import Engine
from inference.errors import DraftlineError, InvalidRequest, NotEnoughMemory, VocabularyMismatch
from inference.model.config import ModelConfig
from inference.runtime import MIB, Runtime, load_runtime, plan_memory, slots_budget
from inference.tokenizer import Tokenizer
from inference.weights.progress import NoProgress
from inference.weights.store import prepare
from tests.tiny_models import make_drafter

Change = Callable[[dict[str, Any]], None]


def _load(model: Path, draft: Path, **options: Any) -> Runtime:
    config = EngineConfig(model=str(model), draft_model=str(draft), **options)
    return load_runtime(config, lambda message, fraction: None)


def _with_tokenizer(directory: Path, model: Path, change: Change, padding: int = 0) -> Path:
    """A drafter of ``model`` whose tokenizer.json was changed."""
    drafter = make_drafter(directory, model, padding=padding)
    path = drafter / "tokenizer.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")
    return drafter


def _swap(value: dict[str, Any]) -> None:
    vocab = value["model"]["vocab"]
    one, other = (token for token, id in vocab.items() if id in (300, 301))
    vocab[one], vocab[other] = vocab[other], vocab[one]


def _rename_a_control_token(value: dict[str, Any]) -> None:
    for token in value["added_tokens"]:
        token["content"] = token["content"].replace("fim_middle", "fim_center")


def _lose_a_control_token(value: dict[str, Any]) -> None:
    value["added_tokens"] = [t for t in value["added_tokens"] if t["content"] != "<|file_sep|>"]


@pytest.mark.parametrize(
    ("change", "token"),
    [(_swap, "token 300"), (_rename_a_control_token, "fim_middle"), (_lose_a_control_token, "file_sep")],
)
def test_other_vocabularies_are_refused(
    tmp_path: Path, tiny_home: Path, looping_model: Path, change: Change, token: str
) -> None:
    draft = _with_tokenizer(tmp_path / "draft", looping_model, change)
    with pytest.raises(VocabularyMismatch, match=token) as caught:
        _load(looping_model, draft)
    assert str(draft) in caught.value.message and "--draft-model" in caught.value.next_step


def test_the_engine_fails_with_the_reason(tmp_path: Path, tiny_home: Path, looping_model: Path) -> None:
    draft = _with_tokenizer(tmp_path / "draft", looping_model, _swap)
    engine = Engine(EngineConfig(model=str(looping_model), draft_model=str(draft)))
    engine.start()
    with pytest.raises(DraftlineError) as caught:
        engine.wait_ready(60)
    assert caught.value.code == "vocabulary-mismatch"
    engine.close()


def test_a_table_that_is_too_short_is_refused(tmp_path: Path, tiny_home: Path, looping_model: Path) -> None:
    # The same tokenizer, but the model's own table ends before its last token.
    prepared = prepare(str(looping_model), "int8")
    config = ModelConfig.from_hf({**prepared.config, "vocab_size": 500})
    draft = DraftFiles("short", prepared, config)
    with pytest.raises(VocabularyMismatch, match="token 500"):
        check_vocabularies(prepared, Tokenizer(prepared.tokenizer), draft)


def test_padding_and_further_tokens_are_no_difference(
    tmp_path: Path, tiny_home: Path, looping_model: Path
) -> None:
    def further(value: dict[str, Any]) -> None:
        entry = {**value["added_tokens"][0], "id": 512, "content": "<|tool_call|>"}
        value["added_tokens"].append(entry)

    def padded(value: dict[str, Any]) -> None:
        # As in a GGUF file, where the vocabulary holds all ids.
        vocab = value["model"]["vocab"]
        vocab.update({token["content"]: token["id"] for token in value["added_tokens"]})
        vocab["[PAD512]"] = 512

    for name, change in (("further", further), ("padded", padded)):
        draft = _with_tokenizer(tmp_path / name, looping_model, change, padding=16)
        assert _load(looping_model, draft).draft_model is not None
        # And the other way round: the target's padding is no token that a drafter must know.
        if name == "padded":
            assert _load(draft, looping_model).draft_model is not None
        else:
            with pytest.raises(VocabularyMismatch, match="tool_call"):
                _load(draft, looping_model)


def test_a_missing_draft_model_fails_as_a_missing_model_does(tiny_home: Path, looping_model: Path) -> None:
    for name, code in (("no-such-model", "unknown-model"), ("qwen2.5-coder-3b", "model-not-fetched")):
        with pytest.raises(DraftlineError) as caught:
            _load(looping_model, Path(name))
        assert caught.value.code == code
    with pytest.raises(InvalidRequest):
        Engine(EngineConfig(draft_model=" "))


def test_the_memory_plan_counts_both(
    tmp_path: Path, tiny_home: Path, looping_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft_model = make_drafter(tmp_path / "draft", looping_model, layers=1)
    options = EngineConfig(
        model=str(looping_model), draft_model=str(draft_model), context=2048, kv_budget_mb=8
    )
    prepared = prepare(options.model, options.numerics)
    config = ModelConfig.from_hf(prepared.config)
    draft = find_draft_model(options, NoProgress())
    assert draft is not None
    alone, together = plan_memory(options, config, prepared), plan_memory(options, config, prepared, draft)
    slot = KvSlot.bytes_for(config, 2048, "fp32")
    assert alone == together == 2048
    # One layer of three: a third more for each slot.
    assert slots_budget(options, config, None) == 8 * MIB
    assert slots_budget(options, config, draft) == 6 * MIB
    small = EngineConfig(context=2560, kv_budget_mb=2)
    assert plan_memory(small, config, prepared) == 2560
    with pytest.raises(NotEnoughMemory):
        plan_memory(small, config, prepared, draft)

    files = prepared.weights.stat().st_size + draft.prepared.weights.stat().st_size

    class _Memory:
        available = 600 * MIB + slot + slot // 3 + files - 1

    monkeypatch.setattr("psutil.virtual_memory", lambda: _Memory)
    assert plan_memory(options, config, prepared) == alone
    with pytest.raises(NotEnoughMemory, match="with /") as caught:
        plan_memory(options, config, prepared, draft)
    assert "--draft-model" in caught.value.next_step


def test_the_doctor_measures_both(tmp_path: Path, tiny_home: Path, looping_model: Path) -> None:
    draft_model = make_drafter(tmp_path / "draft", looping_model, layers=1)
    quiet: Callable[[str, float | None], None] = lambda message, fraction: None  # noqa: E731
    options = EngineConfig(model=str(looping_model), context=512)
    alone = measure(options, quiet)
    both = measure(EngineConfig(model=str(looping_model), context=512, draft_model=str(draft_model)), quiet)
    assert alone.draft_model is None and both.draft_model is not None
    draft = both.draft_model
    assert draft.source == str(draft_model)
    assert draft.packed > 0 and draft.forward_ms > 0 and draft.context == 512
    assert both.memory.packed == alone.memory.packed + draft.packed
    assert both.memory.mapped == alone.memory.mapped + draft.mapped
    assert both.memory.slot == alone.memory.slot + draft.slot
    assert "draft_model" in both.start_up.steps
