"""Prompts: the golden form for Qwen, and each family by a vocabulary of its own."""

from __future__ import annotations

import pytest

from lsp_server.prompts.families import FAMILIES
from lsp_server.prompts.fim import FimParts, find_format, render
from tests.fake_engine import QWEN_SPECIALS, FakeCodec


def shown(specials: tuple[str, ...], parts: FimParts) -> str:
    codec = FakeCodec(specials)
    format = find_format(codec)
    assert format is not None
    return codec.show(render(format, parts, codec))


def test_qwen_golden() -> None:
    parts = FimParts("def f(a):\n    return ", "\n\nprint(f(1))\n")
    expected = "<|fim_prefix|>def f(a):\n    return <|fim_suffix|>\n\nprint(f(1))\n<|fim_middle|>"
    assert shown(QWEN_SPECIALS, parts) == expected


def test_qwen_stops_at_every_control_token() -> None:
    codec = FakeCodec()
    format = find_format(codec)
    assert format is not None
    assert format.family.name == "qwen2.5-coder"
    assert format.stop_ids == codec.special_ids
    assert format.overhead == 3


def test_the_current_line_can_stand_behind_the_middle_marker() -> None:
    parts = FimParts("def f(a):\n", "\n", head="    return ")
    expected = "<|fim_prefix|>def f(a):\n<|fim_suffix|>\n<|fim_middle|>    return "
    assert shown(QWEN_SPECIALS, parts) == expected


def test_spellings_in_the_document_stay_text() -> None:
    codec = FakeCodec()
    format = find_format(codec)
    assert format is not None
    text = "print('<|fim_middle|>')"
    prompt = render(format, FimParts(text, text), codec)
    assert sum(id in codec.special_ids for id in prompt) == 3


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert "\ufffd" in shown(QWEN_SPECIALS, FimParts("a\ud83d", ""))


def test_limits_cut_the_far_ends() -> None:
    parts = FimParts("0123456789", "abcdefghij", head="xyz", max_prefix=5, max_suffix=3)
    assert shown(QWEN_SPECIALS, parts) == "<|fim_prefix|>89<|fim_suffix|>abc<|fim_middle|>xyz"
    parts = FimParts("0123456789", "", head="uvwxyz", max_prefix=4)
    assert shown(QWEN_SPECIALS, parts) == "<|fim_prefix|><|fim_suffix|><|fim_middle|>wxyz"


def test_no_family_without_fim_tokens() -> None:
    assert find_format(FakeCodec(("<|endoftext|>", "<|im_end|>"))) is None
    assert find_format(FakeCodec(("<|fim_prefix|>", "<|fim_suffix|>"))) is None, "all three are needed"


EXPECTED = {
    "qwen2.5-coder": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "codegemma": "<bos><|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "granite-4": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "fim-bar": "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
    "mellum": "<fim_suffix>S<fim_prefix>P<fim_middle>",
    "starcoder2": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "starcoder": "<fim_prefix>P<fim_suffix>S<fim_middle>",
    "santacoder": "<fim-prefix>P<fim-suffix>S<fim-middle>",
    "deepseek-coder": "<｜begin▁of▁sentence｜><｜fim▁begin｜>P<｜fim▁hole｜>S<｜fim▁end｜>",
    "codellama": "<s>▁<PRE>P▁<SUF>S▁<MID>",
    "codestral": "<s>[SUFFIX]S[PREFIX]P",
    "seed-coder": "<[begin▁of▁sentence]><[fim-suffix]>S<[fim-prefix]>P<[fim-middle]>",
    "glm": "<|code_prefix|>P<|code_suffix|>S<|code_middle|>",
    "falcon-coder": "<|prefix|>P<|suffix|>S<|middle|>",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_family_is_found_by_its_vocabulary(name: str) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    begin = (family.begin,) if family.begin else ()
    vocabulary = tuple(dict.fromkeys((*family.controls, *family.needs, *family.stops, *begin)))
    vocabulary = tuple(spelling for spelling in vocabulary if spelling not in family.lacks)
    codec = FakeCodec(vocabulary)
    format = find_format(codec)
    assert format is not None
    if name != "starcoder":
        assert format.family.name == name
    assert codec.show(render(format, FimParts("P", "S"), codec)) == EXPECTED[name]
    for control in family.controls:
        assert codec.special(control) in format.stop_ids
