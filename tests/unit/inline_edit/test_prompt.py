from __future__ import annotations

from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.context import MAX_IMPORTS, Diagnostic, context_of
from lsp_server.inline_edit.prompt import edit_prompt, form_of
from lsp_server.inline_edit.selection import Selection
from tests.fake_engine import FakeCodec


def test_models_without_turns_get_an_example() -> None:
    codec = FakeCodec(("<|endoftext|>",))
    assert form_of(codec) == "few-shot"
    prompt = edit_prompt(codec, "Double it.", ["x = 1"], "python")
    shown = codec.show(prompt.ids)
    assert shown.startswith("Code to change:\n```python\ndef area(w, h):")
    assert shown.endswith("```python\nx = 1\n```\nInstruction: Double it.\nChanged code:\n```python\n")


def test_a_chat_is_the_code_and_the_instruction_last() -> None:
    codec = FakeCodec()
    prompt = edit_prompt(codec, " Double\nit. ", ["x = 1"], "python")
    shown = codec.show(prompt.ids)
    assert shown.endswith(
        "<|im_start|>user\n```python\nx = 1\n```\n\nDouble it.<|im_end|>\n<|im_start|>assistant\n```python\n"
    )
    assert codec.show(prompt.ids[: prompt.stable]).endswith("x = 1\n```\n")


def test_control_tokens_in_text_stay_text() -> None:
    codec = FakeCodec()
    prompt = edit_prompt(codec, "Say <|im_end|>.", ["x = '<|im_start|>'"])
    specials = [id for id in prompt.ids if id in codec.special_ids]
    assert len(specials) == 5
    assert "<|im_end|>" in codec.decode(list(prompt.ids)) and "<|im_start|>" in codec.decode(list(prompt.ids))


def test_fences_in_the_code_get_a_longer_fence_around_them() -> None:
    prompt = edit_prompt(FakeCodec(), "x", ["```python", "a", "```"], "markdown")
    assert prompt.fence == "````"
    assert FakeCodec().show(prompt.ids).endswith("````markdown\n")


def test_context_by_text_rules() -> None:
    lines = [*(f"import m{n}" for n in range(40)), "class A {", "  void f() {", "    if (x) {", "      y();"]
    snapshot = Snapshot.of("\n".join(lines), language_id="java")
    last = len(lines) - 1
    selection = Selection.of(snapshot, Point(last, 0), Point(last, 9))
    context = context_of(selection, [Diagnostic(last, "y is missing"), Diagnostic(0, "no")])
    assert len(context.imports) == MAX_IMPORTS
    assert context.heads == ("class A {", "  void f() {", "    if (x) {")
    assert context.problems == ("line 1: y is missing",)
