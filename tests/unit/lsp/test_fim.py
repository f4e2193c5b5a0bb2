"""Prompts: the golden form for Qwen, and each family by a vocabulary of its own."""

from __future__ import annotations

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


def test_no_family_without_fim_tokens() -> None:
    assert find_format(FakeCodec(("<|endoftext|>", "<|im_end|>"))) is None
    assert find_format(FakeCodec(("<|fim_prefix|>", "<|fim_suffix|>"))) is None, "all three are needed"
