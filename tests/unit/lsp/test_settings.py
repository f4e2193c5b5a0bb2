"""Settings from clients, and the switches of the command line."""

from __future__ import annotations

import argparse
import os

import pytest

from inference.api import EngineConfig
from lsp_server.commands.switches import WrongUsage, add_switches, settings_from
from lsp_server.settings import Settings, merge


def test_defaults_are_those_of_the_engine() -> None:
    assert Settings().engine_config() == EngineConfig()


def test_all_keys() -> None:
    values = {
        "model": "other",
        "numerics": "bf16",
        "mixed": " layers.0.* = fp32 ,head=bf16",
        "draft": "none",
        "draftModel": "small",
        "device": "cuda:1",
        "kernels": "torch",
        "threads": 3,
        "context": 2048,
        "kvBudget": 99,
        "kvNumerics": "int8",
        "kvOffload": 0,
        "prefillChunk": 64,
        "noCache": True,
        "promptOrder": "psm",
        "maxNewTokens": 32,
        "temperature": 0.5,
        "seed": 7,
        "maxLines": 0,
        "debounceMs": 75.0,
        "firstLineMs": 0,
        "prefetch": False,
        "candidates": 5,
        "statistics": False,
        "enable": False,
        "disabledLanguages": ["go"],
        "disabledFilters": ["blank"],
        "allowDownload": True,
        "replaceSuffix": True,
    }
    settings, warnings, unknown = merge(Settings(), {"draftline": values})
    assert not warnings and not unknown
    assert settings.engine_config() == EngineConfig(
        "other",
        "bf16",
        "none",
        "cuda:1",
        "torch",
        3,
        2048,
        99,
        64,
        False,
        True,
        draft_model="small",
        kv="int8",
        kv_offload_mb=0,
        mixed="layers.0.*=fp32,head=bf16",
    )
    options = settings.completion_options()
    assert (options.max_new_tokens, options.max_lines, options.temperature, options.seed) == (32, 0, 0.5, 7)
    assert options.filters_off == {"blank"} and options.order == "psm"
    assert (settings.debounce_ms, settings.first_line_ms) == (75, 0)
    assert (settings.prefetch, settings.candidates, settings.statistics) == (False, 5, False)
    assert not settings.answers("python")


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("numerics", "int4", "one of int8, nf4, llm-int8, bf16, fp16, fp32"),
        ("mixed", "head", "PATTERN=NUMERICS"),
        ("mixed", "head=int3", "PATTERN=NUMERICS"),
        ("mixed", ["head=bf16"], "PATTERN=NUMERICS"),
        ("draft", 1, "one of none, ngram, auto"),
        ("threads", 0, "a whole number from 1"),
        ("threads", True, "a whole number"),
        ("threads", 1000, f"from 1 to {4 * (os.cpu_count() or 1)} (4 for each core of this machine)"),
        ("maxLines", 1.5, "a whole number"),
        ("promptOrder", "smp", "one of spm, psm, line-in-middle, lines-in-middle"),
        ("temperature", "hot", "a number from 0 to 5"),
        ("enable", "yes", "true or false"),
        ("disabledLanguages", "go", "a list"),
        ("model", "", "a text"),
        ("draftModel", 1, "a text"),
        ("device", "tpu", "cpu, cuda, mps"),
        ("kvNumerics", "int4", "one of fp32, int8"),
        ("kvOffload", -1, "a whole number from 0"),
        ("candidates", 6, "a whole number from 1 to 5"),
        ("prefetch", 1, "true or false"),
    ],
)
def test_an_invalid_value_is_named_with_what_is_accepted(key: str, value: object, accepted: str) -> None:
    settings, warnings, _ = merge(Settings(), {key: value})
    assert settings == Settings()
    assert len(warnings) == 1
    assert f"draftline.{key} must be" in warnings[0]
    assert accepted in warnings[0]


def test_numerics_follow_the_device_unless_they_are_chosen() -> None:
    def numerics(**values: str) -> str:
        return merge(Settings(), values)[0].engine_config().numerics

    assert numerics() == numerics(device="cpu") == "int8"
    assert numerics(device="cuda") == numerics(device="cuda:1") == "nf4"
    assert numerics(device="mps") == "bf16"
    assert numerics(device="cuda", numerics="int8") == "int8"


def test_null_keeps_and_unknown_keys_are_reported() -> None:
    settings, warnings, unknown = merge(Settings(model="m"), {"model": None, "maxLine": 3})
    assert settings.model == "m"
    assert not warnings
    assert unknown == ["maxLine"]
    assert merge(Settings(), None)[0] == Settings()
    assert merge(Settings(), [1])[0] == Settings()


def test_switches() -> None:
    parser = argparse.ArgumentParser()
    add_switches(parser)
    args = parser.parse_args(
        ["--draft", "ngram", "--no-cache", "--kv-budget", "64", "--temperature", "0.2", "--seed", "3"]
    )
    settings = settings_from(args)
    assert (settings.draft, settings.no_cache, settings.kv_budget) == ("ngram", True, 64)
    assert settings_from(parser.parse_args([])) == Settings()
    assert settings_from(parser.parse_args(["--prompt-order", "psm"])).prompt_order == "psm"
    assert settings_from(parser.parse_args(["--draft-model", "small.gguf"])).draft_model == "small.gguf"
    with pytest.raises(WrongUsage, match="--max-new-tokens must be a whole number from 1"):
        settings_from(parser.parse_args(["--max-new-tokens", "0"]))
